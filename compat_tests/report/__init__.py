"""The report card: which client at which version proves which feature, on ours and on Apache Kafka.

A test says whom it speaks for with `@pytest.mark.client("name", "version")`, or by such a mark on its parameter, and
what it proves with `@pytest.mark.feature("produce: codecs")`, from the list in `features`. `pytest --record` keeps
the outcomes of a run under the cache; `python -m compat_tests.report` turns the runs into docs/compatibility.md and
the table in the README; with `--run` it makes the runs first.
"""
