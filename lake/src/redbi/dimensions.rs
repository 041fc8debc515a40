//! Users, notes, shops and items. Each row is a function of the seed and its key, so that the events can know an item's
//! shop and price without looking the item up.

use crate::random::{Random, Zipf};

use super::RedbiSize;

/// 2026-03-02, a Monday, in days since 1970: the first day of the events.
pub(super) const FIRST_DAY: i32 = 20_514;
pub(super) const DAY_MICROS: i64 = 86_400_000_000;

pub(super) const CATEGORIES: &[(&str, u32)] = &[
    ("beauty", 22),
    ("fashion", 20),
    ("food", 15),
    ("travel", 11),
    ("home", 9),
    ("fitness", 7),
    ("digital", 6),
    ("baby", 5),
    ("pets", 3),
    ("books", 2),
];

/// City, country, tier of the city, share of the users.
pub(super) const CITIES: &[((&str, &str, i32), u32)] = &[
    (("Shanghai", "CN", 1), 16),
    (("Beijing", "CN", 1), 13),
    (("Guangzhou", "CN", 1), 10),
    (("Shenzhen", "CN", 1), 10),
    (("Chengdu", "CN", 2), 8),
    (("Hangzhou", "CN", 2), 8),
    (("Wuhan", "CN", 2), 6),
    (("Xi'an", "CN", 2), 5),
    (("Changsha", "CN", 2), 4),
    (("Kunming", "CN", 3), 3),
    (("Luoyang", "CN", 3), 3),
    (("Hong Kong", "HK", 1), 3),
    (("Singapore", "SG", 1), 3),
    (("Kuala Lumpur", "MY", 2), 2),
    (("Tokyo", "JP", 1), 2),
    (("Toronto", "CA", 1), 1),
    (("London", "GB", 1), 1),
    (("Sydney", "AU", 1), 1),
    (("New York", "US", 1), 1),
];

pub(super) const PLATFORMS: &[(&str, u32)] =
    &[("ios", 46), ("android", 44), ("harmony", 7), ("web", 3)];

const AGE_BANDS: &[(&str, u32)] = &[
    ("-17", 6),
    ("18-24", 34),
    ("25-34", 38),
    ("35-44", 15),
    ("45-", 7),
];
const GENDERS: &[(&str, u32)] = &[("female", 66), ("male", 32), ("unknown", 2)];
const SIGNUP_CHANNELS: &[(&str, u32)] = &[
    ("app store", 38),
    ("friend", 27),
    ("search ad", 14),
    ("video ad", 12),
    ("preinstalled", 9),
];
const NOTE_TYPES: &[(&str, u32)] = &[("image", 58), ("video", 37), ("live replay", 5)];
const SHOP_KINDS: &[(&str, u32)] = &[("individual", 60), ("brand", 28), ("flagship", 12)];
const ADJECTIVES: &[&str] = &[
    "quiet", "golden", "little", "northern", "velvet", "lucky", "wild", "silver", "honest",
    "morning",
];
const NOUNS: &[&str] = &[
    "harbour", "garden", "atelier", "kitchen", "studio", "market", "lantern", "orchard",
    "workshop", "corner",
];
const TITLES: &[&str] = &[
    "A week of {}: what I kept",
    "Honest notes on {}",
    "{} on a budget",
    "Five things about {} nobody tells you",
    "My {} routine, step by step",
    "Is this {} worth it?",
    "{} for beginners",
];

/// Streams of random numbers, one for each table.
const USERS: u64 = 1 << 56;
const NOTES: u64 = 2 << 56;
const SHOPS: u64 = 3 << 56;
const ITEMS: u64 = 4 << 56;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct User {
    pub user_id: i64,
    pub nickname: String,
    pub gender: &'static str,
    pub age_band: &'static str,
    pub city: &'static str,
    pub country: &'static str,
    pub city_tier: i32,
    pub platform: &'static str,
    pub signup_channel: &'static str,
    /// Days since 1970.
    pub signup_date: i32,
    pub level: i32,
    pub is_creator: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Note {
    pub note_id: i64,
    pub author_id: i64,
    pub title: String,
    pub category: &'static str,
    pub note_type: &'static str,
    /// The item the note shows, if any.
    pub item_id: Option<i64>,
    pub is_sponsored: bool,
    /// Length of its video.
    pub video_seconds: Option<i32>,
    /// Microseconds since 1970.
    pub published_at: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shop {
    pub shop_id: i64,
    pub name: String,
    pub kind: &'static str,
    pub category: &'static str,
    pub city: &'static str,
    pub country: &'static str,
    /// 1 to 5.
    pub rating: f64,
    /// Days since 1970.
    pub opened_on: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub item_id: i64,
    pub shop_id: i64,
    pub name: String,
    pub category: &'static str,
    /// Hundredths.
    pub price: i64,
    /// Days since 1970.
    pub listed_on: i32,
    pub in_stock: bool,
}

pub(super) fn user(size: &RedbiSize, key: i64) -> User {
    let mut r = Random::new(size.seed, USERS | key as u64);
    let (city, country, city_tier) = r.weighted(CITIES);
    // Most signed up lately.
    let age_days = (r.exponential(320.0) as i32).min(2_400);
    User {
        user_id: key,
        nickname: format!(
            "{}_{}{}",
            pick(&mut r, ADJECTIVES),
            pick(&mut r, NOUNS),
            key
        ),
        gender: r.weighted(GENDERS),
        age_band: r.weighted(AGE_BANDS),
        city,
        country,
        city_tier,
        platform: r.weighted(PLATFORMS),
        signup_channel: r.weighted(SIGNUP_CHANNELS),
        signup_date: FIRST_DAY - age_days,
        level: (1 + age_days / 120 + r.below(3) as i32).min(10),
        is_creator: r.chance(0.08),
    }
}

pub(super) fn note(size: &RedbiSize, authors: &Zipf, items: &Zipf, key: i64) -> Note {
    let mut r = Random::new(size.seed, NOTES | key as u64);
    let category = r.weighted(CATEGORIES);
    let note_type = r.weighted(NOTE_TYPES);
    let template = pick(&mut r, TITLES);
    let age_micros = (r.exponential(25.0) * DAY_MICROS as f64) as i64;
    Note {
        note_id: key,
        author_id: authors.key(&mut r),
        title: template.replace("{}", category),
        category,
        note_type,
        item_id: r.chance(0.3).then(|| items.key(&mut r)),
        is_sponsored: r.chance(0.06),
        video_seconds: (note_type != "image").then(|| 8 + (r.exponential(70.0) as i32).min(3_600)),
        published_at: i64::from(FIRST_DAY) * DAY_MICROS - age_micros.min(900 * DAY_MICROS),
    }
}

pub(super) fn shop(size: &RedbiSize, key: i64) -> Shop {
    let mut r = Random::new(size.seed, SHOPS | key as u64);
    let (city, country, _) = r.weighted(CITIES);
    let name = format!(
        "{} {}",
        capitalised(pick(&mut r, ADJECTIVES)),
        pick(&mut r, NOUNS)
    );
    Shop {
        shop_id: key,
        name: format!("{name} No. {key}"),
        kind: r.weighted(SHOP_KINDS),
        category: r.weighted(CATEGORIES),
        city,
        country,
        rating: (50.0 - (r.exponential(4.0)).min(35.0)).round() / 10.0,
        opened_on: FIRST_DAY - 30 - r.below(2_000) as i32,
    }
}

pub(super) fn item(size: &RedbiSize, shops: &Zipf, key: i64) -> Item {
    let mut r = Random::new(size.seed, ITEMS | key as u64);
    let shop_id = shops.key(&mut r);
    let category = r.weighted(CATEGORIES);
    let name = format!(
        "{} {category} {}",
        capitalised(pick(&mut r, ADJECTIVES)),
        pick(&mut r, NOUNS)
    );
    // Prices end on .90, as prices do; most are low, a few are high.
    let whole = 9 + (r.exponential(110.0) as i64).min(4_990);
    Item {
        item_id: key,
        shop_id,
        name,
        category,
        price: whole * 100 + 90,
        listed_on: FIRST_DAY - 1 - r.below(500) as i32,
        in_stock: r.chance(0.94),
    }
}

fn pick<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.below(words.len() as u64) as usize]
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
