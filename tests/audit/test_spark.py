"""The same answer from Spark in local mode, with PyPI's pyspark and Debian's default-jre-headless (`make soak`)."""

import shutil

import pytest
from generated import write_columns
from quick import QUICK
from test_engines import documents, log, same

from statepool.audit import audit_log

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java: install Debian's default-jre-headless"),
]


@pytest.fixture(scope="module")
def spark():
    pyspark = pytest.importorskip("pyspark.sql", reason="no Spark: pip install pyspark")
    session = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("sampled", [False, True])
def test_the_same_answer_from_spark(sampled, spark, tmp_path, monkeypatch):
    import ibis

    if sampled:
        monkeypatch.setattr("statepool.audit.counts.MOST_ROWS", 4_000)
        monkeypatch.setattr("statepool.audit.counts.SAMPLED", 2_000)
    path = write_columns(log(), tmp_path / "log.parquet")
    here = audit_log(path, context="device", **QUICK)
    there = audit_log(ibis.pyspark.connect(spark).read_parquet(path), context="device", **QUICK)
    same(*documents(here, there))
