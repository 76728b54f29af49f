// A chosen theme is set before the first paint, so that no page flashes in the other one.
(() => {
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be off; the system's theme then holds.
  }
})();
