"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# Columns of a finished trace that an owner may still change.
FREE = ("owner", "visibility")

FINAL = "OLD.status IN ('ok', 'failed')"
WORDS = "SELECT RAISE(ABORT, 'a finished trace never changes');"


def upgrade() -> None:
    """Create all tables."""
    _groups_and_traces()
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("trace_id", sa.String(22), sa.ForeignKey("traces.id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_trace", "events", ["trace_id", "id"])
    op.create_table(
        "addenda",
        sa.Column("content", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("revision", sa.Integer(), primary_key=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )
    op.create_table(
        "captures",
        sa.Column("team", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("launches", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(22), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("process", sa.String(), nullable=True),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("heartbeat", sa.Double(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
    )
    _immutability()


def _ownership() -> list[sa.Column[str]]:
    return [
        sa.Column("team", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
    ]


def _groups_and_traces() -> None:
    op.create_table(
        "groups",
        sa.Column("id", sa.String(22), primary_key=True),
        *_ownership(),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
    )
    op.create_table(
        "traces",
        sa.Column("id", sa.String(22), primary_key=True),
        sa.Column("group_id", sa.String(22), sa.ForeignKey("groups.id"), nullable=True),
        *_ownership(),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("kernel", sa.String(), nullable=True),
        sa.Column("target", sa.String(32), nullable=False),
        sa.Column("variant", sa.Integer(), nullable=False),
        sa.Column("config", sa.String(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=True),
        sa.Column("compile_key", sa.String(64), nullable=True),
        sa.Column("content", sa.String(64), nullable=True),
        sa.Column("cacheable", sa.Boolean(), nullable=False),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("failure", sa.JSON(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(22), nullable=True),
        sa.Column("claim", sa.String(22), nullable=True),
        sa.Column("claimed_at", sa.Double(), nullable=True),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.UniqueConstraint("group_id", "target", "variant"),
    )
    op.create_index("ix_traces_key", "traces", ["team", "compile_key", "status"])
    op.create_index("ix_traces_created", "traces", ["team", "created"])
    op.create_index("ix_traces_status", "traces", ["status"])
    op.create_index("ix_traces_content", "traces", ["content"])


def _immutability() -> None:
    """Refuse every change of what a permalink shows, whoever asks for it."""
    columns = [column["name"] for column in sa.inspect(op.get_bind()).get_columns("traces")]
    changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in columns if name not in FREE)
    triggers = {
        "final_traces_stay BEFORE UPDATE ON traces": f"{FINAL} AND ({changed})",
        "final_traces_are_kept BEFORE DELETE ON traces": FINAL,
        "addenda_stay BEFORE UPDATE ON addenda": "1",
        "addenda_are_kept BEFORE DELETE ON addenda": "1",
        "groups_stay BEFORE UPDATE ON groups": (
            "NEW.id IS NOT OLD.id OR NEW.team IS NOT OLD.team OR NEW.created IS NOT OLD.created "
            "OR NEW.request IS NOT OLD.request"
        ),
        "groups_are_kept BEFORE DELETE ON groups": (
            "EXISTS (SELECT 1 FROM traces WHERE group_id = OLD.id AND status IN ('ok', 'failed'))"
        ),
    }
    for head, condition in triggers.items():
        op.execute(f"CREATE TRIGGER {head} WHEN {condition} BEGIN {WORDS} END")
