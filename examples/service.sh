#!/bin/sh
# The service with curl. First, in another window: statepool serve
# Usage: service.sh [URL [KEY]]
set -eu
URL=${1:-http://127.0.0.1:8000}
KEY=${2:-none}
ask() { # METHOD PATH [BODY]
  curl --silent --show-error --fail-with-body -X "$1" "$URL$2" \
    -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' ${3:+--data "$3"}
  echo
}

ask PUT /v1/pools/curl '{
  "actions": ["plain", "discount"], "states": ["left", "cart", "bought"],
  "P": [[0.80, 0.15, 0.05], [0.60, 0.30, 0.10]],
  "settings": {"window": 2592000, "holdout": 0.1}
}'

ask POST /v1/pools/curl/decisions '{"ticket": "visit-1"}'                  # what to show
ask PUT /v1/pools/curl/decisions/visit-1/state '{"state": "cart"}'         # seconds later
ask PUT /v1/pools/curl/decisions/visit-1/outcome '{"loss": 0.0}'           # days later: bought
ask PUT /v1/pools/curl/decisions/visit-1/outcome '{"loss": 0.0}'           # again: harmless

# Rows for this visitor alone, from a model of yours; labels need not be in the catalogue.
ask POST /v1/pools/curl/decisions '{"ticket": "visit-2", "candidates": {"discount": [0.5, 0.3, 0.2], "gift": [0.7, 0.1, 0.2]}}'
ask PUT /v1/pools/curl/decisions/visit-2/state '{"state": "left"}'
ask PUT /v1/pools/curl/decisions/visit-2/outcome '{"loss": 1.0}'

ask PUT /v1/pools/curl/actions/free-shipping '{"row": [0.7, 0.2, 0.1]}'    # starts from what its states have shown
ask GET /v1/pools/curl/decisions/visit-1
ask GET /v1/pools/curl
ask GET /v1/pools/curl/rows
