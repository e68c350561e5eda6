#!/usr/bin/env bats
# What reports look like, over hand-made snapshots (tests/unit/cases.h). `make golden` renews tests/golden.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return
    make -s build/unit/report >/dev/null
    build/unit/report "$BATS_TEST_TMPDIR"
}

@test "every report is its golden file, and every golden file is a report" {
    run diff -ru tests/golden "$BATS_TEST_TMPDIR"
    echo "$output"
    [ "$status" -eq 0 ]
    [ -e tests/golden/deadlock-mutex.txt ]
}

@test "every JSON report is one line that the schema allows" {
    python3 - shim/man/report.schema.json "$BATS_TEST_TMPDIR"/*.json <<'PY'
import json, sys
from jsonschema import Draft202012Validator as Validator
schema = json.load(open(sys.argv[1]))
Validator.check_schema(schema)
seen = set()
for path in sys.argv[2:]:
    text = open(path).read()
    assert text.count("\n") == 1, path
    report = json.loads(text)
    for error in Validator(schema).iter_errors(report):
        sys.exit(f"{path}: {list(error.path)}: {error.message[:200]}")
    seen.add(report["finding"])
missing = set(schema["properties"]["finding"]["enum"]) - seen
assert not missing, missing
PY
}

@test "code and call of a finding stand on one line" {
    for file in "$BATS_TEST_TMPDIR"/*.txt; do
        grep -qE '^rdgate: \[4170\] finding: [a-z-]+: [A-Za-z_.]+' "$file"
    done
    grep -q 'rd_kafka_pause_partitions .* met rd_kafka_consumer_poll of thread' "$BATS_TEST_TMPDIR/collision.txt"
}
