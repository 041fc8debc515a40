//! The fact: what users did, in the order of time.

use crate::random::{Random, Zipf};

use super::RedbiSize;
use super::dimensions::{DAY_MICROS, FIRST_DAY, PLATFORMS, item};

/// Days of the fact.
pub(super) const DAYS: usize = 7;

/// Traffic of each day, Monday first.
const DAY_WEIGHTS: [u64; DAYS] = [100, 97, 96, 99, 108, 120, 115];

/// Traffic of each hour.
const HOUR_WEIGHTS: [u32; 24] = [
    30, 18, 10, 6, 5, 7, 14, 26, 36, 40, 42, 47, 58, 54, 46, 44, 45, 50, 58, 70, 84, 92, 80, 52,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Impression,
    Click,
    View,
    Like,
    Search,
    Save,
    Comment,
    Follow,
    Share,
    AddToCart,
    Purchase,
}

const KINDS: &[(Kind, u32)] = &[
    (Kind::Impression, 520),
    (Kind::Click, 180),
    (Kind::View, 160),
    (Kind::Like, 50),
    (Kind::Search, 40),
    (Kind::Save, 15),
    (Kind::Comment, 10),
    (Kind::Follow, 8),
    (Kind::Share, 7),
    (Kind::AddToCart, 6),
    (Kind::Purchase, 4),
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Impression => "impression",
            Kind::Click => "click",
            Kind::View => "view",
            Kind::Like => "like",
            Kind::Search => "search",
            Kind::Save => "save",
            Kind::Comment => "comment",
            Kind::Follow => "follow",
            Kind::Share => "share",
            Kind::AddToCart => "add_to_cart",
            Kind::Purchase => "purchase",
        }
    }
}

const CHANNELS: &[(&str, u32)] = &[
    ("explore", 46),
    ("search", 20),
    ("following", 14),
    ("nearby", 6),
    ("profile", 5),
    ("shop", 5),
    ("live", 4),
];

const VERSIONS: &[(&str, u32)] = &[
    ("8.41", 55),
    ("8.40", 25),
    ("8.39", 12),
    ("8.36", 5),
    ("8.20", 3),
];

/// One row of `events`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub event_id: i64,
    /// Microseconds since 1970.
    pub event_time: i64,
    pub user_id: i64,
    pub session_id: i64,
    pub event_type: &'static str,
    pub channel: &'static str,
    pub note_id: Option<i64>,
    pub item_id: Option<i64>,
    pub shop_id: Option<i64>,
    pub platform: &'static str,
    pub app_version: &'static str,
    /// Place in the list the user saw, from 1.
    pub position: Option<i32>,
    pub duration_ms: Option<i64>,
    pub quantity: Option<i32>,
    /// Hundredths.
    pub amount: Option<i64>,
}

/// Which keys are popular.
#[derive(Debug, Clone)]
pub(super) struct Popularity {
    pub users: Zipf,
    pub notes: Zipf,
    pub shops: Zipf,
    pub items: Zipf,
}

impl Popularity {
    pub(super) fn of(size: &RedbiSize) -> Self {
        Self {
            users: Zipf::new(size.users, 0.75),
            notes: Zipf::new(size.notes, 1.05),
            shops: Zipf::new(size.shops, 0.85),
            items: Zipf::new(size.items, 0.95),
        }
    }
}

/// A run of events of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    day: usize,
    /// Events of the day.
    of_day: u64,
    /// Within the day.
    start: u64,
    len: u64,
    /// Of the slice's first event.
    first_id: u64,
}

/// Cuts all events into slices of at most `rows`.
pub(super) fn slices(events: u64, rows: u64) -> Vec<Slice> {
    let total: u64 = DAY_WEIGHTS.iter().sum();
    let mut slices = Vec::new();
    let mut first_id = 1;
    let mut left = events;
    for (day, weight) in DAY_WEIGHTS.iter().enumerate() {
        let of_day = if day + 1 == DAYS {
            left
        } else {
            events * weight / total
        };
        left -= of_day;
        let mut start = 0;
        while start < of_day {
            let len = rows.min(of_day - start);
            slices.push(Slice {
                day,
                of_day,
                start,
                len,
                first_id,
            });
            start += len;
            first_id += len;
        }
    }
    slices
}

/// The events of a slice.
pub(super) fn events(size: &RedbiSize, popularity: &Popularity, slice: Slice) -> Vec<Event> {
    let mut r = Random::new(size.seed, slice.first_id);
    (0..slice.len)
        .map(|i| {
            let at = ((slice.start + i) as f64 + r.unit()) / slice.of_day as f64;
            let micros = (time_of_day(at) * DAY_MICROS as f64) as i64;
            let day = FIRST_DAY + slice.day as i32;
            let time = i64::from(day) * DAY_MICROS + micros.min(DAY_MICROS - 1);
            event(
                size,
                popularity,
                &mut r,
                (slice.first_id + i) as i64,
                time,
                slice.day as i64,
            )
        })
        .collect()
}

fn event(
    size: &RedbiSize,
    popularity: &Popularity,
    r: &mut Random,
    event_id: i64,
    event_time: i64,
    day: i64,
) -> Event {
    let kind = r.weighted(KINDS);
    let user_id = popularity.users.key(r);
    let buying = matches!(kind, Kind::AddToCart | Kind::Purchase);
    let note_id = match kind {
        Kind::Search => None,
        // Half of the shopping begins at a note.
        _ if buying && r.chance(0.5) => None,
        _ => Some(popularity.notes.key(r)),
    };
    let product = buying.then(|| item(size, &popularity.shops, popularity.items.key(r)));
    let quantity = buying.then(|| 1 + r.exponential(0.3) as i32);
    let amount = match (kind, &product, quantity) {
        (Kind::Purchase, Some(product), Some(quantity)) => {
            let full = product.price * i64::from(quantity);
            // A quarter goes with a coupon of a tenth.
            Some(if r.chance(0.25) {
                full - full / 10
            } else {
                full
            })
        }
        _ => None,
    };
    Event {
        event_id,
        event_time,
        user_id,
        session_id: (user_id * DAYS as i64 + day) * 4 + r.below(4) as i64,
        event_type: kind.name(),
        channel: match kind {
            Kind::Search => "search",
            _ => r.weighted(CHANNELS),
        },
        note_id,
        item_id: product.as_ref().map(|p| p.item_id),
        shop_id: product.as_ref().map(|p| p.shop_id),
        platform: r.weighted(PLATFORMS),
        app_version: r.weighted(VERSIONS),
        position: matches!(kind, Kind::Impression | Kind::Click)
            .then(|| 1 + (r.exponential(12.0) as i32).min(499)),
        duration_ms: (kind == Kind::View)
            .then(|| 300 + (r.exponential(14_000.0) as i64).min(1_800_000)),
        quantity,
        amount,
    }
}

/// When, as a share of the day, the share `at` of the day's traffic has passed.
fn time_of_day(at: f64) -> f64 {
    let total: u32 = HOUR_WEIGHTS.iter().sum();
    let mut left = at * f64::from(total);
    for (hour, weight) in HOUR_WEIGHTS.iter().enumerate() {
        let weight = f64::from(*weight);
        if left < weight {
            return (hour as f64 + left / weight) / 24.0;
        }
        left -= weight;
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_every_event_once() {
        let slices = slices(10_000, 300);
        assert_eq!(slices.iter().map(|s| s.len).sum::<u64>(), 10_000);
        let mut next = 1;
        for slice in &slices {
            assert_eq!(slice.first_id, next);
            next += slice.len;
        }
        assert_eq!(slices.iter().map(|s| s.day).max(), Some(6));
    }

    #[test]
    fn evenings_are_busier_than_nights() {
        assert_eq!(time_of_day(0.0), 0.0);
        // Hours 0 to 5 together have 76 of 1014 parts of the traffic.
        assert!((time_of_day(76.0 / 1014.0) - 0.25).abs() < 1e-9);
        assert!(time_of_day(0.999_999) < 1.0);
    }

    #[test]
    fn events_fit_their_dimensions_and_their_kind() {
        let size = RedbiSize::of_events(5_000);
        let popularity = Popularity::of(&size);
        let mut purchases = 0;
        let all: Vec<Event> = slices(size.events, 1_000)
            .into_iter()
            .flat_map(|s| events(&size, &popularity, s))
            .collect();
        assert_eq!(all.len(), 5_000);
        for e in &all {
            assert!((1..=size.users as i64).contains(&e.user_id));
            assert!(
                e.note_id
                    .is_none_or(|n| (1..=size.notes as i64).contains(&n))
            );
            assert_eq!(e.duration_ms.is_some(), e.event_type == "view");
            assert_eq!(e.amount.is_some(), e.event_type == "purchase");
            if let Some(id) = e.item_id {
                assert_eq!(e.shop_id, Some(item(&size, &popularity.shops, id).shop_id));
                assert!(
                    e.shop_id
                        .is_some_and(|s| (1..=size.shops as i64).contains(&s))
                );
            }
            purchases += usize::from(e.amount.is_some());
        }
        assert!(purchases > 5, "{purchases}");
        let day = |e: &Event| e.event_time.div_euclid(DAY_MICROS) - i64::from(FIRST_DAY);
        assert!(all.iter().all(|e| (0..7).contains(&day(e))));
        assert!(
            all.is_sorted_by_key(|e| e.event_time / 60_000_000 / 5) || all.is_sorted_by_key(day)
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_events() {
        let size = RedbiSize::of_events(2_000);
        let popularity = Popularity::of(&size);
        let slice = slices(size.events, 500)[2];
        assert_eq!(
            events(&size, &popularity, slice),
            events(&size, &popularity, slice)
        );
    }
}
