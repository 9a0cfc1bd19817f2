"""The JSON of each noun, in requests and in answers; the OpenAPI page is made from it."""
