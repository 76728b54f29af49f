"""Jobs that make addenda."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "addendum_jobs",
        sa.Column("id", sa.String(22), primary_key=True),
        sa.Column("trace_id", sa.String(22), sa.ForeignKey("traces.id"), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(22), nullable=True),
        sa.Column("claim", sa.String(22), nullable=True),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.UniqueConstraint("content", "kind"),
    )
    op.create_index("ix_addendum_jobs_status", "addendum_jobs", ["status"])
