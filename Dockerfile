# Runs `make demo`: docker build --tag homdp_ppl . && docker run --rm homdp_ppl
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /homdp_ppl
COPY . .
RUN make .venv/ready
CMD ["make", "demo"]
