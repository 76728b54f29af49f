"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

FINAL_TRACES_STAY = """
CREATE TRIGGER final_traces_stay BEFORE UPDATE ON traces
WHEN OLD.status IN ('ok', 'failed') AND (
    NEW.status IS NOT OLD.status OR NEW.content IS NOT OLD.content OR NEW.failure IS NOT OLD.failure
    OR NEW.compile_key IS NOT OLD.compile_key OR NEW.spec IS NOT OLD.spec OR NEW.target IS NOT OLD.target
)
BEGIN
    SELECT RAISE(ABORT, 'a finished trace never changes');
END
"""


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
    op.execute(FINAL_TRACES_STAY)
