//! Random numbers that are the same on every machine and with every version of every library.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream of one part (`stream`) of one data set (`seed`).
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self {
            state: seed ^ stream.wrapping_mul(0xA24B_AED4_963E_E407),
        };
        // Streams of neighbouring numbers start apart.
        random.state = random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In 0..n; `n` is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // The bias of a 64-bit product is below 2^-32 for the sizes here.
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of the items, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, items: &[(T, u32)]) -> T {
        let total: u32 = items.iter().map(|(_, weight)| weight).sum();
        let mut at = self.below(u64::from(total.max(1))) as u32;
        for (item, weight) in items {
            if at < *weight {
                return *item;
            }
            at -= weight;
        }
        items[0].0
    }

    /// Exponentially distributed with that mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Ranks 0..n, where rank r comes about as often as 1 / (r + 1)^s: the head of the list gets most of the traffic.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    n: u64,
    exponent: f64,
    /// (n + 1)^(1 - s) - 1
    span: f64,
    /// Scatters the ranks over the keys, so that popular keys are not neighbours.
    multiplier: u64,
}

impl Zipf {
    /// `exponent` is between 0 and 2 and not 1.
    pub(crate) fn new(n: u64, exponent: f64) -> Self {
        let n = n.max(1);
        let mut multiplier = 2_654_435_761 % n;
        while gcd(multiplier, n) != 1 {
            multiplier += 1;
        }
        Self {
            n,
            exponent,
            span: ((n + 1) as f64).powf(1.0 - exponent) - 1.0,
            multiplier,
        }
    }

    /// The rank, by inverting the integral of x^-s.
    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        let x = (1.0 + random.unit() * self.span).powf(1.0 / (1.0 - self.exponent));
        (x as u64).saturating_sub(1).min(self.n - 1)
    }

    /// A key in 1..=n.
    pub(crate) fn key(&self, random: &mut Random) -> i64 {
        let rank = u128::from(self.rank(random));
        (rank * u128::from(self.multiplier) % u128::from(self.n)) as i64 + 1
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        // SplitMix64 seeded with 1234567, the reference implementation's first outputs.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn zipf_is_skewed_and_reaches_only_its_keys() {
        let zipf = Zipf::new(1_000, 1.1);
        let mut random = Random::new(1, 1);
        let mut counts = vec![0u32; 1_001];
        for _ in 0..100_000 {
            counts[zipf.key(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let head: u32 = counts[..10].iter().sum();
        assert!(head > 30_000, "the ten most popular have {head} of 100000");
        assert!(counts[500] > 0, "the tail is not empty");
    }

    #[test]
    fn ranks_are_scattered_without_collision() {
        for n in [1, 2, 10, 97, 1_000] {
            let zipf = Zipf::new(n, 1.1);
            let keys: std::collections::HashSet<u64> =
                (0..n).map(|r| r * zipf.multiplier % n).collect();
            assert_eq!(keys.len() as u64, n);
        }
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(7, 0);
        let often = (0..10_000)
            .filter(|_| random.weighted(&[("a", 9), ("b", 1)]) == "a")
            .count();
        assert!((8_800..9_200).contains(&often), "{often}");
    }
}
