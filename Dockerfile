# One file for every image: `--build-arg SERVICE=gateway|voice|tools|knowledge|awareness|terminals|models|admin`, `--target gateway` for the one with the browser's files.
# Each image holds the packages that uv.lock names for its own service and no others. docker-compose.yml builds them all.
# Both images may be given with a digest of one's own: `--build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:…`.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
ARG NODE_IMAGE=node:24.11.1-bookworm-slim

FROM ${PYTHON_IMAGE} AS packages
ARG SERVICE
ENV UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1 \
    UV_PYTHON=python3 \
    UV_PYTHON_DOWNLOADS=never \
    UV_SYSTEM_CERTS=true \
    UV_NATIVE_TLS=true
# The same wheels as in deploy/bootstrap.py, for x86_64 and aarch64; another file is not installed.
RUN set -eu; \
    x86_64=e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984; \
    aarch64=0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d; \
    echo "uv==0.13.8 --hash=sha256:$x86_64 --hash=sha256:$aarch64" > /uv.txt; \
    pip install --no-cache-dir --root-user-action=ignore --only-binary=:all: --no-deps --require-hashes -r /uv.txt
WORKDIR /app
COPY pyproject.toml uv.lock hatch_build.py README.md LICENSE ./
RUN set -eu; \
    case "$SERVICE" in \
      gateway|voice|tools|knowledge|terminals) extras="--extra $SERVICE" ;; \
      models) extras="--extra models --extra speech" ;; \
      awareness|admin) extras="" ;; \
      *) echo "SERVICE must be gateway, voice, tools, knowledge, awareness, terminals, models or admin; it is '$SERVICE'." >&2; exit 2 ;; \
    esac; \
    echo "$extras" > /extras; \
    uv sync --frozen --no-dev --no-install-project --no-cache $extras
COPY voxbridge voxbridge
COPY agents agents
COPY playbooks playbooks
COPY tours tours
RUN uv sync --frozen --no-dev --no-cache $(cat /extras)

FROM ${PYTHON_IMAGE} AS service
ARG SERVICE
LABEL org.opencontainers.image.title="voxbridge-${SERVICE}" \
      org.opencontainers.image.licenses="Apache-2.0"
# The language model's engine is linked with OpenMP, which slim images lack.
RUN if [ "$SERVICE" = models ]; then \
      apt-get -q update && apt-get -q -y install --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*; \
    fi
# Named volumes take their owner from these folders when they are first used, so that nothing ever runs as root.
RUN groupadd --gid 10001 voxbridge \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin voxbridge \
    && for name in admin gateway voice tools knowledge awareness terminals recordings nats valkey; do install -d -o 10001 -g 10001 -m 0700 /credentials/$name; done \
    && install -d -o 10001 -g 10001 -m 0700 /stores/nats /stores/valkey \
    && install -d -o 10001 -g 10001 -m 0700 /terminals \
    && install -d -o 10001 -g 10001 -m 0755 /models /workspace /knowledge
COPY --from=packages /app /app
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    VOXBRIDGE_DATA_DIR=/tmp/voxbridge \
    VOXBRIDGE_MODELS_DIR=/models
USER 10001:10001
ENTRYPOINT ["voxbridge"]
CMD ["--help"]

FROM ${NODE_IMAGE} AS bundles
WORKDIR /src
COPY package.json package-lock.json ./
RUN set -eu; \
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; fi; \
    npm ci --no-audit --no-fund --no-update-notifier --loglevel=error
COPY tsconfig.json ./
COPY client client
COPY studio studio
RUN npm run --silent build

FROM service AS gateway
COPY --from=bundles /src/client/dist /app/client/dist
COPY --from=bundles /src/studio/dist /app/studio/dist
