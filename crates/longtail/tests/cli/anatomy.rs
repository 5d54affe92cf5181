//! `longtail sweep --anatomy`: the wait is found where it was put, by order and majority alone. A request is held for so long that
//! what a busy machine adds to it is little beside that; in exact time the same is in `engine/tests/engine/simulated`.

use model::anatomy::AnatomySums;
use model::watch::WatchCurve;
use model::{Anatomy, Nanos, Run};

use crate::lab::{Lab, end, free_port, has, major};

/// The anatomy of a run in which every good answer said what the app took, and nothing impossible.
fn whole(run: &Run) -> &Anatomy {
    let anatomy = run.anatomy.as_ref().expect("the app was asked");
    assert_eq!((anatomy.all.requests, anatomy.silent, anatomy.impossible), (run.tally.counts.good(), 0, 0));
    assert_eq!(Some(anatomy.all.response_time / anatomy.all.requests), run.tally.response_time.mean());
    let parts = anatomy.all;
    let known = parts.send_lag + parts.before_app.unwrap_or(Nanos::ZERO) + parts.app + parts.rest();
    assert_eq!(known, parts.response_time, "the parts are the whole");
    anatomy
}

/// Whether most of the response time was before the app.
fn waited(parts: &AnatomySums) -> bool {
    parts.before_app.expect("there are stamps") * 2 > parts.response_time
}

#[test]
fn what_waits_in_the_server_is_before_the_app_and_not_in_the_kernel() {
    for queue in ["shared", "split"] {
        let (lab, port) = (Lab::new(), free_port());
        let program = env!("CARGO_BIN_EXE_longtail");
        let words = format!(
            "sweep --slots 4 --url http://127.0.0.1:{port}/ -d0.1 -R4 --multiples 1,8 --no-calibrate \
             --anatomy -- {program} sink --listen 127.0.0.1:{port} --workers 2 --threads 2 --delay 100ms --queue {queue}"
        );
        lab.run(&words).with_code(0);
        let study = lab.study();
        let [one, eight] = &study.runs[..] else { panic!("two runs") };
        // At the slots the app is the most of it; at eight times as many seven parts of eight are before it, but for the first of
        // each connection. They are 128: there is a slowest one in a hundred.
        assert!(!waited(&whole(one).all), "{queue}: {:?}", one.anatomy);
        assert!(waited(&whole(eight).all) && waited(&whole(eight).slowest.unwrap()), "{queue}: {:?}", eight.anatomy);
        let kernel = eight.accept_queue_wait().unwrap();
        let before = whole(eight).all.before_app.unwrap() / whole(eight).all.requests;
        assert!(kernel * 2 < before, "{queue}: it accepts all at once, yet {kernel} of {before}");
    }
}

/// The app that longtail brings says nothing more than it always did to whoever does not ask.
#[test]
fn nobody_is_told_who_does_not_ask() {
    if !has("puma") {
        return;
    }
    let heads = |words: &str| {
        let (lab, port) = (Lab::new(), free_port());
        let words = format!("sweep -t1:1 -d0.001 -R5 --multiples 1 --no-calibrate {words}");
        lab.start_at(port, &words).end().with_code(0);
        let run = lab.study().runs[0].clone();
        (run.anatomy.is_some(), run.tally.received_bytes / run.tally.all_answers())
    };
    let ((silent, bytes), (stamped, more_bytes)) = (heads(""), heads("--anatomy"));
    assert!(!silent && stamped, "only who asks gets stamps");
    assert!(more_bytes > bytes + "x-app-stamps".len() as u64, "{bytes} bytes an answer, and {more_bytes}");
}

/// What most looks at `name` saw: a sample may fall into the moment in which a connection goes from one place to another.
fn most_common(run: &Run, name: &str) -> u64 {
    let (_, curve) = run.watch.as_ref().and_then(|watch| watch.curve(name)).unwrap_or_else(|| panic!("no {name}"));
    let mut values: Vec<u64> = curve.values.iter().flatten().copied().collect();
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn a_server_that_accepts_all_has_no_queue_in_the_kernel() {
    let lab = Lab::new();
    lab.run("sweep --server builtin -w2 -t2:2 -d0.05 --for 1500ms --warm-up 200ms --multiples 1,4 --no-calibrate")
        .with_code(0);
    for run in &lab.study().runs {
        assert_eq!(most_common(run, "accept_queue"), 0);
        assert_eq!(most_common(run, "open_connections"), u64::from(run.connections));
        let watch = run.watch.as_ref().unwrap();
        assert_eq!(watch.missing, Vec::<String>::new());
        // One process, and it used the CPU.
        let cpu: Vec<&WatchCurve> = watch.curves("cpu").map(|(_, curve)| curve).collect();
        assert!(cpu.len() == 1 && cpu[0].counted().is_some_and(|ns| ns > 0), "{cpu:?}");
        assert!(watch.curve("backlog").is_none(), "a server without statistics has none, not 0");
    }
}

/// Puma up to 6 accepts nothing while its threads are taken (and from 7.0 on all): at four times the slots, three quarters
/// of closing connections wait in the kernel, and so does most of the response time. A request is held so long that most samples fall
/// between two exchanges of connections, also where a busy machine takes its time for them.
#[test]
fn what_an_old_puma_does_not_accept_waits_in_the_kernel() {
    if !has("puma") {
        return;
    }
    for socket in ["tcp4", "unix"] {
        let (lab, port) = (Lab::new(), free_port());
        let words = format!(
            "sweep -s {socket} -w2 -t2:2 -d0.3 -k --for 4s --warm-up 1s --multiples 4 --anatomy --no-calibrate"
        );
        let mut sweep = lab.longtail(&words);
        sweep.env("PUMA_TEST_PORT", port.to_string());
        end(&mut sweep).with_code(0);
        let study = lab.study();
        let run = &study.runs[0];
        let watch = run.watch.as_ref().unwrap();
        // Master and two workers, each with its threads.
        assert_eq!(watch.curves("threads").count(), 3, "{watch:?}");
        assert_eq!(watch.curves("backlog").count(), 2);
        for (track, backlog) in watch.curves("backlog") {
            assert!(track.source == "puma stats" && backlog.staleness.len() == track.at.len(), "{backlog:?}");
        }
        if (1..=6).contains(&major(&study.server)) {
            assert_eq!((most_common(run, "accept_queue"), run.connections), (12, 16));
            let (wait, mean) = (run.accept_queue_wait().unwrap(), run.tally.response_time.mean().unwrap());
            assert!(wait > mean / 2 && wait < mean * 2, "most of {mean:?}, but {wait:?}");
            // By the app's own stamps it was before the app.
            assert!(waited(&whole(run).all), "{:?}", run.anatomy);
        }
    }
}
