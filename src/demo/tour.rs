//! The guided tour: a few statements that show what the engine is for.

use std::io::Write;

use super::paint::Paint;
use crate::client::Client;
use crate::shell::{Display, ExecuteError, Format, duration_text, execute};

/// A stop of the tour.
struct Stop {
    title: &'static str,
    why: &'static str,
    sql: &'static str,
}

const STOPS: &[Stop] = &[
    Stop {
        title: "A dashboard: the week, day by day",
        why: "Every event of the week is read, on all workers at once.",
        sql: "\
SELECT CAST(event_time AS DATE) AS day,
       count(*) AS events,
       count(DISTINCT user_id) AS users,
       sum(CASE WHEN event_type = 'purchase' THEN 1 ELSE 0 END) AS purchases,
       sum(amount) AS revenue
FROM redbi.events
GROUP BY 1
ORDER BY 1",
    },
    Stop {
        title: "A join: what sells, and in which shops",
        why: "The fact meets two dimensions; the small sides are sent to every worker.",
        sql: "\
SELECT i.category, s.kind AS shop_kind, count(*) AS purchases,
       sum(e.amount) AS revenue, round(avg(s.rating), 2) AS rating
FROM redbi.events e
JOIN redbi.items i ON i.item_id = e.item_id
JOIN redbi.shops s ON s.shop_id = e.shop_id
WHERE e.event_type = 'purchase'
GROUP BY i.category, s.kind
ORDER BY revenue DESC
LIMIT 10",
    },
    Stop {
        title: "What it will cost: purchases from Thursday on",
        why: "From metadata alone: the files of other days are left out before anything is opened.",
        sql: "\
EXPLAIN ESTIMATE
SELECT s.kind AS shop_kind, e.channel, count(*) AS purchases, sum(e.amount) AS revenue
FROM redbi.events e
JOIN redbi.shops s ON s.shop_id = e.shop_id
WHERE e.event_time >= TIMESTAMP '2026-03-05 00:00:00' AND e.event_time < TIMESTAMP '2026-03-09 00:00:00'
  AND e.event_type = 'purchase'
GROUP BY s.kind, e.channel",
    },
    Stop {
        title: "How it will run: the same query's plan",
        why: "The scan says what was pruned and why; the stages say what runs on the workers.",
        sql: "\
EXPLAIN
SELECT s.kind AS shop_kind, e.channel, count(*) AS purchases, sum(e.amount) AS revenue
FROM redbi.events e
JOIN redbi.shops s ON s.shop_id = e.shop_id
WHERE e.event_time >= TIMESTAMP '2026-03-05 00:00:00' AND e.event_time < TIMESTAMP '2026-03-09 00:00:00'
  AND e.event_type = 'purchase'
GROUP BY s.kind, e.channel",
    },
    Stop {
        title: "How it ran: the profile",
        why: "The same plan with the metrics of every stage and task on every worker.",
        sql: "\
EXPLAIN ANALYZE
SELECT s.kind AS shop_kind, e.channel, count(*) AS purchases, sum(e.amount) AS revenue
FROM redbi.events e
JOIN redbi.shops s ON s.shop_id = e.shop_id
WHERE e.event_time >= TIMESTAMP '2026-03-05 00:00:00' AND e.event_time < TIMESTAMP '2026-03-09 00:00:00'
  AND e.event_type = 'purchase'
GROUP BY s.kind, e.channel",
    },
];

/// Takes the tour, printing each statement, its result and its time.
pub async fn take(client: &dyn Client, paint: Paint) -> Result<(), ExecuteError> {
    let mut out = std::io::stdout();
    for (number, stop) in (1..).zip(STOPS) {
        writeln!(
            out,
            "\n{}",
            paint.title(&format!("{number}/{}  {}", STOPS.len(), stop.title))
        )?;
        writeln!(out, "{}\n", paint.note(stop.why))?;
        for line in stop.sql.lines() {
            writeln!(out, "{}", paint.sql(&format!("  {line}")))?;
        }
        writeln!(out)?;
        let display = Display {
            format: Format::Table,
            limit: 200,
            summary: false,
            timing: false,
            progress: None,
        };
        let begun = std::time::Instant::now();
        execute(client, stop.sql, display, &mut out).await?;
        writeln!(out, "{}", paint.note(&duration_text(begun.elapsed())))?;
    }
    Ok(())
}
