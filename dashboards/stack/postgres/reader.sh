#!/bin/sh
# Makes the role with which Grafana reads: it sees the views of tidemark_views, and nothing else.
# PostgreSQL's image runs it when it makes the database, before Tidemark makes the views. It may be run again:
#   docker compose exec postgres /docker-entrypoint-initdb.d/reader.sh
set -eu
export READER_PASSWORD_FILE="${READER_PASSWORD_FILE:-/run/secrets/reader_password}"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\set password `cat "$READER_PASSWORD_FILE"`
SELECT 'CREATE ROLE grafana LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'grafana') \gexec
ALTER ROLE grafana PASSWORD :'password';
ALTER ROLE grafana SET statement_timeout = '30s';
ALTER ROLE grafana SET default_transaction_read_only = on;
SELECT 'CREATE SCHEMA tidemark_views'
  WHERE NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'tidemark_views') \gexec
GRANT USAGE ON SCHEMA tidemark_views TO grafana;
GRANT SELECT ON ALL TABLES IN SCHEMA tidemark_views TO grafana;
ALTER DEFAULT PRIVILEGES IN SCHEMA tidemark_views GRANT SELECT ON TABLES TO grafana;
SQL
