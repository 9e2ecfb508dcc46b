# redtail as an ordinary user: `make container` builds it and makes a run in it.
#
#     docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" redtail run experiment.toml
#
# It has no libraries of extras; an image of one's own adds them: FROM redtail, then RUN pip install --user
# 'redtail[recordings]'.
#
# The first stage builds the wheel with the Rust version of rust-toolchain.toml; the second has no compiler.
ARG RUST=1.95.0
ARG DEBIAN=trixie

FROM rust:${RUST}-slim-${DEBIAN} AS build
ARG RUST
ENV RUSTUP_TOOLCHAIN=${RUST}
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends binutils gcc libc6-dev make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# Nobody can open the laboratory's page in it: `redtail explore` listens on 127.0.0.1 alone.
RUN make build-wheel MANYLINUX= LAB=

FROM python:3.13-slim-${DEBIAN}
COPY requirements.lock pyproject.toml /tmp/
COPY --from=build /source/dist/*.whl /tmp/
# The lock has the hashes of all files; pip installs uv by its hash, and uv checks the others.
RUN sed -n '/^uv==/,/[^\\]$/p' /tmp/requirements.lock > /tmp/uv.txt \
    && pip install --no-cache-dir --require-hashes --no-deps -r /tmp/uv.txt \
    && uv pip install --system --no-cache -c /tmp/requirements.lock -r /tmp/pyproject.toml \
    && pip install --no-cache-dir --no-deps /tmp/redtail-*.whl \
    && pip uninstall --yes uv \
    && rm /tmp/requirements.lock /tmp/pyproject.toml /tmp/uv.txt /tmp/redtail-*.whl \
    && useradd --create-home --uid 1000 redtail \
    && install -d -o redtail -g redtail /work
# Matplotlib and the Linux backend keep files there; with `docker run --user` the home may not be writable.
ENV MPLCONFIGDIR=/tmp/matplotlib
USER redtail
WORKDIR /work
ENTRYPOINT ["redtail"]
CMD ["--help"]
