FROM python:3.13-slim

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --no-compile -c constraints.txt '.[examples,postgres]' && useradd --create-home fairlead
COPY examples ./examples

USER fairlead
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8000
CMD ["fairlead", "server", "--help"]
