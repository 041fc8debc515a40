# Built from a checkout: docker build -t tarn .
# NOT TRIED YET: no Docker engine was at hand when this was written.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin tarn

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/tarn /usr/local/bin/tarn
VOLUME /var/lib/tarn
ENV TARN_DATA_DIR=/var/lib/tarn
ENTRYPOINT ["tarn"]
CMD ["server"]
