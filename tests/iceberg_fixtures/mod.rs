//! Tables that Spark wrote with the Iceberg Java library, and the answers that it gives to queries over them
//! (`tests/fixtures/iceberg`): every query in one process and on three workers, by MySQL the one and by Flight SQL the other.

mod known_gaps;
mod query;
mod run;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::harness::{Bucket, Settings, package_root};
use known_gaps::known_gap;
use query::queries;
use run::{Failure, run_all};

/// Ids that begin with this are run, for work on some of them; all by default.
const ONLY: &str = "FIXTURE_QUERIES";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_query_is_answered_as_the_reference_does() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let queries: Vec<_> = queries()
        .into_iter()
        .filter(|query| query.id.starts_with(&only))
        .collect();
    let bucket = Bucket::serve("fixtures", &package_root().join("tests/fixtures/iceberg")).await;
    let (one, three) = tokio::join!(
        run_all(&queries, &bucket, 0, Settings::default(), &[]),
        run_all(&queries, &bucket, 3, Settings::default(), &[])
    );
    let mut failures: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
    for failure in one.iter().chain(&three) {
        failures.entry(&failure.id).or_default().push(failure);
    }
    let mut complaint = String::new();
    let mut failed = 0;
    for (id, why) in &failures {
        let gap = known_gap(id);
        // What is not supported yet is refused: a wrong answer is no gap.
        let excused = |failure: &&Failure| gap.is_some_and(|gap| gap.excuses(failure.kind));
        if why.iter().all(&excused) {
            continue;
        }
        failed += 1;
        let mut texts = BTreeSet::new();
        for failure in why.iter().filter(|failure| !excused(failure)) {
            texts.insert(format!(
                "{} {}: {}",
                failure.kind.name(),
                failure.place,
                failure.reason
            ));
        }
        for text in texts {
            let _ = writeln!(complaint, "{id} {text}");
        }
    }
    for query in &queries {
        if known_gap(&query.id).is_some() && !failures.contains_key(query.id.as_str()) {
            failed += 1;
            let _ = writeln!(
                complaint,
                "{} is among the known gaps, and passes",
                query.id
            );
        }
    }
    assert!(
        failed == 0,
        "{failed} of {} queries:\n{complaint}",
        queries.len()
    );
}

/// Tables in buckets, sorted files and the like. They are small, and one worker would read each of them by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn layouts_are_read_by_all_workers() {
    let queries: Vec<_> = queries()
        .into_iter()
        .filter(|query| query.id.starts_with("layout."))
        .collect();
    assert!(queries.len() > 50, "{} queries", queries.len());
    let bucket = Bucket::serve("fixtures", &package_root().join("tests/fixtures/iceberg")).await;
    for broadcast in ["8MiB", "0"] {
        let settings = Settings::default()
            .with("TARN_QUERY_SPREAD", "1")
            .with("TARN_QUERY_BROADCAST", broadcast);
        let failures = run_all(
            &queries,
            &bucket,
            3,
            settings,
            &["SET GLOBAL bucket_joins = ON"],
        )
        .await;
        assert!(failures.is_empty(), "{failures:?}");
    }
}
