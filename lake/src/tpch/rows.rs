//! Rows of `tpchgen` as Arrow columns, in the order of the tables' columns.

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::columns::{dates, decimals, ints, longs, strings, texts};
use crate::load::Chunk;

/// Precision of every decimal of TPC-H.
const P: u8 = 15;

pub(super) fn region(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = RegionGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.r_regionkey),
        strings(&rows, |r| r.r_name),
        strings(&rows, |r| r.r_comment),
    ]
}

pub(super) fn nation(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = NationGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.n_nationkey),
        strings(&rows, |r| r.n_name),
        longs(&rows, |r| r.n_regionkey),
        strings(&rows, |r| r.n_comment),
    ]
}

pub(super) fn supplier(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = SupplierGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.s_suppkey),
        texts(&rows, |r| r.s_name),
        texts(&rows, |r| r.s_address.to_string()),
        longs(&rows, |r| r.s_nationkey),
        texts(&rows, |r| r.s_phone.to_string()),
        decimals(&rows, P, |r| r.s_acctbal.0),
        strings(&rows, |r| &r.s_comment),
    ]
}

pub(super) fn customer(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = CustomerGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.c_custkey),
        texts(&rows, |r| r.c_name),
        texts(&rows, |r| r.c_address.to_string()),
        longs(&rows, |r| r.c_nationkey),
        texts(&rows, |r| r.c_phone.to_string()),
        decimals(&rows, P, |r| r.c_acctbal.0),
        strings(&rows, |r| r.c_mktsegment),
        strings(&rows, |r| r.c_comment),
    ]
}

pub(super) fn part(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = PartGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.p_partkey),
        texts(&rows, |r| r.p_name.to_string()),
        texts(&rows, |r| r.p_mfgr.to_string()),
        texts(&rows, |r| r.p_brand.to_string()),
        strings(&rows, |r| r.p_type),
        ints(&rows, |r| r.p_size),
        strings(&rows, |r| r.p_container),
        decimals(&rows, P, |r| r.p_retailprice.0),
        strings(&rows, |r| r.p_comment),
    ]
}

pub(super) fn partsupp(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = PartSuppGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.ps_partkey),
        longs(&rows, |r| r.ps_suppkey),
        ints(&rows, |r| r.ps_availqty),
        decimals(&rows, P, |r| r.ps_supplycost.0),
        strings(&rows, |r| r.ps_comment),
    ]
}

pub(super) fn orders(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = OrderGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.o_orderkey),
        longs(&rows, |r| r.o_custkey),
        strings(&rows, |r| r.o_orderstatus.as_str()),
        decimals(&rows, P, |r| r.o_totalprice.0),
        dates(&rows, |r| r.o_orderdate.to_unix_epoch()),
        strings(&rows, |r| r.o_orderpriority),
        texts(&rows, |r| r.o_clerk.to_string()),
        ints(&rows, |r| r.o_shippriority),
        strings(&rows, |r| r.o_comment),
    ]
}

pub(super) fn lineitem(scale: f64, part: i32, parts: i32) -> Chunk {
    let generator = LineItemGenerator::new(scale, part, parts);
    let rows: Vec<_> = generator.iter().collect();
    vec![
        longs(&rows, |r| r.l_orderkey),
        longs(&rows, |r| r.l_partkey),
        longs(&rows, |r| r.l_suppkey),
        ints(&rows, |r| r.l_linenumber),
        decimals(&rows, P, |r| r.l_quantity * 100),
        decimals(&rows, P, |r| r.l_extendedprice.0),
        decimals(&rows, P, |r| r.l_discount.0),
        decimals(&rows, P, |r| r.l_tax.0),
        strings(&rows, |r| r.l_returnflag),
        strings(&rows, |r| r.l_linestatus),
        dates(&rows, |r| r.l_shipdate.to_unix_epoch()),
        dates(&rows, |r| r.l_commitdate.to_unix_epoch()),
        dates(&rows, |r| r.l_receiptdate.to_unix_epoch()),
        strings(&rows, |r| r.l_shipinstruct),
        strings(&rows, |r| r.l_shipmode),
        strings(&rows, |r| r.l_comment),
    ]
}
