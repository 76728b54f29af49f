# Serves the app that `make run` serves, as a user without rights. What is installed, and how, is the Makefile's.
FROM python:3.12-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /srv/loupe
COPY . .
RUN make setup PYTHON=/usr/local/bin/python3.12 && rm -rf static/node_modules

FROM python:3.12-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libseccomp2 tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home loupe \
    && install --directory --owner loupe --group loupe --mode 0700 /var/lib/loupe
COPY --from=build /srv/loupe /srv/loupe
WORKDIR /srv/loupe
USER loupe
ENV LOUPE_HOME=/var/lib/loupe
VOLUME /var/lib/loupe
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD [".venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["tini", "--", ".venv/bin/loupe"]
# A container is reached through the ports that its operator publishes: publish them where only trusted people are, or
# behind a proxy with a login. Loupe itself has none yet, and refuses such an address without --no-login.
CMD ["serve", "--host", "0.0.0.0", "--no-login"]
