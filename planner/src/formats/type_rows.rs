//! For tests: the rows of the tables `formats.orc_types` and `formats.avro_types`, as the reference implementation's
//! answers have them (`queries.jsonl`, `formats.orc_types_all`).

pub(crate) const ROWS: [[&str; 18]; 4] = [
    [
        "1",
        "true",
        "1",
        "1",
        "1.5",
        "2.5",
        "1.25",
        "1.000001",
        "1.0000000001",
        "2020-02-29",
        "2020-02-29T12:34:56.123456",
        "2020-02-29T12:34:56.123456Z",
        "abc",
        "00ff10",
        "{a: 1, b: x}",
        "[1, , 3]",
        "{k: 1, n: }",
        "[{x: 1}, ]",
    ],
    [
        "2",
        "false",
        "-2147483648",
        "-9223372036854775808",
        "NaN",
        "-inf",
        "-9999999.99",
        "-999999999999.999999",
        "-9999999999999999999999999999.9999999999",
        "0001-01-01",
        "0001-01-01T00:00:00",
        "0001-01-01T00:00:00Z",
        "",
        "",
        "{a: , b: }",
        "[]",
        "{}",
        "[]",
    ],
    [
        "3", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "",
    ],
    [
        "4",
        "true",
        "2147483647",
        "9223372036854775807",
        "inf",
        "NaN",
        "9999999.99",
        "999999999999.999999",
        "9999999999999999999999999999.9999999999",
        "9999-12-31",
        "9999-12-31T23:59:59.999999",
        "9999-12-31T23:59:59.999999Z",
        "\u{1f600}",
        "ff",
        "{a: 4, b: }",
        "[4]",
        "{: 4}",
        "[{x: }]",
    ],
];

/// Which of the columns are null: an empty text may be an empty string, too.
pub(crate) const NULLS: [(usize, usize); 4] = [(0, 0), (1, 0), (2, 17), (3, 0)];

/// The rows of `formats.orc_evolved` and `formats.avro_evolved`: id, s<z, xx, y>, f, aa, b.
pub(crate) const EVOLVED: [[&str; 5]; 3] = [
    ["1", "{z: , xx: 1, y: y1}", "1.5", "one", ""],
    ["2", "", "", "", ""],
    ["3", "{z: 3, xx: 33, y: y3}", "3.5", "three", "b3"],
];
