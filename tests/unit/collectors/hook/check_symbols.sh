#!/usr/bin/env bash
# usage: check_symbols.sh NM LIBRARY VERSION_SCRIPT - compares exported functions with the list.
set -euo pipefail
exported=$("$1" -D --defined-only "$2" | awk '$2 ~ /[TDBRVW]/ {print $3}' | sed 's/@.*//' | sort)
listed=$(sed -n '/global:/,/local:/p' "$3" | grep -o 'tocsin_[a-z_]*' | sort)
diff <(echo "$exported") <(echo "$listed") && echo "exported symbols: $(echo "$listed" | wc -l), as listed"
