"""Where a server keeps what it must not lose: one protocol, with SQLite and with PostgreSQL."""
