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
RUN make build-wheel MANYLINUX=

FROM python:3.13-slim-${DEBIAN}
COPY requirements.lock /tmp/requirements.lock
COPY --from=build /source/dist/*.whl /tmp/
RUN pip install --no-cache-dir --require-hashes --no-deps -r /tmp/requirements.lock \
    && pip install --no-cache-dir --no-deps /tmp/redtail-*.whl \
    && rm /tmp/requirements.lock /tmp/redtail-*.whl \
    && useradd --create-home --uid 1000 redtail \
    && install -d -o redtail -g redtail /work
# Matplotlib and the Linux backend keep files there; with `docker run --user` the home may not be writable.
ENV MPLCONFIGDIR=/tmp/matplotlib
USER redtail
WORKDIR /work
ENTRYPOINT ["redtail"]
CMD ["--help"]
