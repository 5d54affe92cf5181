//! M/D/c against the tables, an independent series, and other people's figures.

use proptest::prelude::*;

use super::*;

fn mdc(slots: u32, rho: f64) -> ConstantServiceQueue {
    ConstantServiceQueue::new(OfferedLoad::of_utilisation(slots, rho)).unwrap()
}

#[test]
fn m_d_c_is_the_table() {
    // c, ρ, P(W > 0), Wq, W50 W90 W99 W99.9, in service times; 30 digits were carried to get these twelve.
    for (slots, rho, delayed, wq, quantiles) in [
        (1, 0.5, 0.5, 0.5, [0.0, 1.515_744_841_382, 3.336_255_957_002, 5.168_385_030_962]),
        (1, 0.9, 0.9, 4.5, [3.013_047_519_312, 10.782_504_956_027, 21.898_237_349_54, 33.013_969_743_119]),
        (2, 0.5, 0.323_258_942_887, 0.176_741_057_113, [0.0, 0.672_782_188_173, 1.563_917_757_389, 2.478_939_778_693]),
        (
            2,
            0.8,
            0.701_898_317_173,
            0.903_283_879_417,
            [0.543_898_925_742, 2.397_276_477_841, 5.069_551_186_084, 7.741_741_821_037],
        ),
        (
            2,
            0.9,
            0.847_107_642_702,
            2.146_923_214_716,
            [1.398_948_731_891, 5.282_465_665_446, 10.840_331_856_439, 16.398_198_053_229],
        ),
        (
            4,
            0.8,
            0.578_282_015_457,
            0.386_094_930_847,
            [0.137_241_556_545, 1.119_280_706_418, 2.454_584_407_408, 3.790_674_971_307],
        ),
        (5, 0.5, 0.121_341_543_329, 0.030_653_193_797, [0.0, 0.064_959_519_736, 0.558_361_485_987, 0.900_962_948_967]),
        (
            5,
            0.8,
            0.533_615_062_966,
            0.289_060_007_263,
            [0.051_470_909_711, 0.867_039_820_081, 1.937_438_830_508, 3.006_321_841_991],
        ),
        (
            5,
            0.9,
            0.747_828_546_069,
            0.776_695_158_203,
            [0.472_772_955_26, 2.021_836_119_678, 4.244_986_011_465, 6.468_132_490_109],
        ),
        (
            5,
            0.95,
            0.869_247_003_094,
            1.770_788_001_841,
            [1.161_389_611_975, 4.325_571_041_705, 8.852_678_371_163, 13.379_785_700_626],
        ),
        (8, 0.8, 0.433_795_118_732, 0.151_953_802_643, [0.0, 0.504_375_729_407, 1.169_595_458_752, 1.837_694_782_415]),
        (
            10,
            0.9,
            0.646_861_283_932,
            0.344_582_050_38,
            [0.170_518_152_719, 0.958_436_636_404, 2.069_951_767_621, 3.181_525_010_906],
        ),
        (16, 0.8, 0.281_604_418_586, 0.052_547_891_104, [0.0, 0.206_911_270_241, 0.543_466_680_411, 0.878_400_387_091]),
        (
            16,
            0.95,
            0.762_137_861_745,
            0.496_692_862_025,
            [0.301_208_511_67, 1.288_688_561_941, 2.703_409_454_476, 4.118_130_494_933],
        ),
        (
            20,
            0.9,
            0.523_265_066_267,
            0.144_286_075_014,
            [0.017_062_707_427, 0.441_765_974_11, 0.997_638_892_704, 1.553_427_444_538],
        ),
        (
            20,
            0.95,
            0.735_328_362_588,
            0.385_730_777_498,
            [0.226_779_432_669, 1.017_356_399_548, 2.149_133_412_979, 3.280_910_245_355],
        ),
    ] {
        let queue = mdc(slots, rho);
        let near = |what: &str, seen: f64, exact: f64| {
            assert!(
                (seen - exact).abs() <= 2e-11 + 2e-11 * exact,
                "M/D/{slots} at {rho}, {what}: {seen}, exactly {exact}"
            );
        };
        near("delayed", queue.wait_above(0.0), delayed);
        near("mean wait", queue.mean_wait(), wq);
        for (share, exact) in [0.5, 0.9, 0.99, 0.999].into_iter().zip(quantiles) {
            let seen = queue.wait_quantile(share).unwrap();
            near("quantile", seen, exact);
            near("response", queue.response_quantile(share).unwrap(), 1.0 + exact);
        }
    }
}

/// The mean wait once more, by Crommelin's series, which shares no step with [`ConstantServiceQueue`]:
/// `Wq / s = Σ [P(N ≥ i·c) - P(N ≥ i·c + 1) / ρ]` over `i ≥ 1`, `N` Poisson with mean `i·c·ρ`.
/// Near ρ = 1 it takes for ever.
fn mean_wait_by_series(load: OfferedLoad) -> f64 {
    let (slots, rho) = (f64::from(load.slots()), load.utilisation());
    let mut sum = 0.0;
    for i in 1u32.. {
        let n = f64::from(i) * slots;
        let mean = n * rho;
        // P(N = n), and the ratio of each next term: below 1, since mean < n.
        let log_first = (1..=n as u64).map(|j| (mean / j as f64).ln()).sum::<f64>() - mean;
        let (mut term, mut j, mut beyond) = (log_first.exp(), n, 0.0);
        let first = term;
        while term > first * 1e-18 && term > 0.0 {
            j += 1.0;
            term *= mean / j;
            beyond += term;
        }
        // P(N ≥ n) - P(N ≥ n + 1) / ρ = P(N = n) - (1/ρ - 1)·P(N ≥ n + 1).
        let addend = first - (1.0 / rho - 1.0) * beyond;
        sum += addend;
        if addend < 1e-15 * sum || first == 0.0 {
            break;
        }
    }
    sum * load.service()
}

#[test]
fn the_mean_is_crommelins_series() {
    for slots in [1, 2, 3, 5, 8, 20, 40, 100] {
        for rho in [0.05, 0.3, 0.5, 0.8, 0.9, 0.95] {
            let load = OfferedLoad::of_utilisation(slots, rho);
            let (seen, series) = (ConstantServiceQueue::new(load).unwrap().mean_wait(), mean_wait_by_series(load));
            assert!((seen - series).abs() < 1e-11 + 1e-10 * series, "M/D/{slots} at {rho}: {seen}, series {series}");
        }
    }
}

#[test]
fn one_slot_is_pollaczek_and_khinchine() {
    for rho in [0.1, 0.5, 0.9, 0.99] {
        let exact = rho / (2.0 * (1.0 - rho));
        assert!((mdc(1, rho).mean_wait() / exact - 1.0).abs() < 1e-9, "{rho}");
        assert!((mdc(1, rho).wait_above(0.0) - rho).abs() < 1e-11);
    }
}

#[test]
fn other_peoples_figures_are_met() {
    // Q-MAM (MATLAB) by way of imperial-qore/line-solver, whose truncation is some 1e-9.
    let two = ConstantServiceQueue::new(OfferedLoad::new(2, 2.0, 0.6).unwrap()).unwrap();
    assert!((two.mean_wait() - 0.175_821_645_673_367).abs() < 2e-9);
    for (count, p) in [(0, 0.238_685_365_188_794), (1, 0.322_629_269_626_472), (2, 0.231_148_685_357_196)] {
        assert!((two.sizes.probability(count) - p).abs() < 1e-10);
    }
    let three = ConstantServiceQueue::new(OfferedLoad::new(3, 2.0, 1.2).unwrap()).unwrap();
    assert!((three.mean_wait() - 0.664_680_268_427_454).abs() < 2e-9);
    assert!((three.sizes.probability(0) - 0.049_841_430_456_382_3).abs() < 1e-10);
    assert!((three.sizes.probability(3) - 0.181_953_124_332_401).abs() < 1e-10);
}

#[test]
fn many_slots_and_nearly_full_ones_have_an_answer() {
    for (slots, rho) in
        [(5, 1e-12), (256, 1e-9), (1, 0.999), (2, 0.995), (20, 0.99), (100, 0.99), (256, 0.5), (256, 0.9), (256, 0.99)]
    {
        let queue = mdc(slots, rho);
        // The wait of half an exponential service, within some percent at such loads.
        let half = 0.5 * ErlangQueue::new(queue.load()).unwrap().mean_wait();
        let (wait, p99) = (queue.mean_wait(), queue.wait_quantile(0.99).unwrap());
        assert!(
            wait >= half * 0.999_999 - 1e-9 && wait <= half * 1.35 + 1e-9,
            "M/D/{slots} at {rho}: {wait}, half {half}"
        );
        assert!(p99.is_finite() && p99 >= 0.0);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(matches!(
        ConstantServiceQueue::new(OfferedLoad::new(5, 5.0, 1.0).unwrap()),
        Err(QueueingError::NoSteadyState { .. })
    ));
    assert!(matches!(
        ConstantServiceQueue::new(OfferedLoad::of_utilisation(257, 0.5)),
        Err(QueueingError::TooMany { .. })
    ));
    assert_eq!(mdc(2, 0.5).wait_quantile(f64::NAN).map_err(|error| error.to_string().is_empty()), Err(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn it_is_a_distribution(slots in 1u32..40, rho in 0.01f64..0.985, x in 0.0f64..5.0) {
        let queue = mdc(slots, rho);
        let (here, later) = (queue.wait_above(x), queue.wait_above(x + 0.1));
        prop_assert!((0.0..=1.0).contains(&here) && later <= here + 1e-12, "{} {}", here, later);
        // A constant service waits less than an exponential one.
        let exponential = ErlangQueue::new(queue.load()).unwrap();
        prop_assert!(queue.mean_wait() <= exponential.mean_wait() + 1e-12);
        prop_assert!(queue.wait_above(0.0) <= exponential.wait_above(0.0) + 1e-12);
    }

    #[test]
    fn a_quantile_is_where_its_share_is(slots in 1u32..25, rho in 0.3f64..0.97, share in 0.0f64..0.999) {
        let queue = mdc(slots, rho);
        let wait = queue.wait_quantile(share).unwrap();
        prop_assert!(queue.wait_above(wait) <= 1.0 - share + 1e-12);
        if wait > 0.0 {
            prop_assert!((queue.wait_above(wait) - (1.0 - share)).abs() < 1e-9);
        }
    }
}
