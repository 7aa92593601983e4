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

COPY pyproject.toml README.md LICENSE ./
COPY service/ service/
COPY collectors/ collectors/
COPY rules/ rules/
COPY dashboards/ dashboards/
COPY spark/ spark/
COPY migrations/ migrations/

# Editable, as everywhere: names like `rules` stay out of site-packages, and migrations keep all of their files.
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

# Numbers, so that a cluster's rule of "no root" can be checked without reading the image's passwd.
RUN groupadd --gid 10001 tidemark \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/tidemark \
       --shell /usr/sbin/nologin tidemark \
    && install --directory --owner=10001 --group=10001 --mode=0750 /var/lib/tidemark

COPY --from=build /opt/tidemark /opt/tidemark

ENV PATH=/opt/tidemark/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /var/lib/tidemark
VOLUME ["/var/lib/tidemark"]
USER 10001:10001
EXPOSE 8780
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8780/readyz', timeout=2)"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
