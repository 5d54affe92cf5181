//! `longtail sweep --anatomy`: the wait is found where it was put, by order and majority alone. A request is held for so long that
//! what a busy machine adds to it is little beside that; in exact time the same is in `engine/tests/engine/simulated`.

use model::anatomy::{AnatomySums, AppSource};
use model::{Anatomy, Diagnostic, Nanos, Run};

use crate::lab::{Lab, free_port, has};

/// The anatomy of a run in which every good answer said what the app took, and nothing impossible.
pub(crate) fn whole(run: &Run) -> &Anatomy {
    let anatomy = run.anatomy.as_ref().expect("the app was asked");
    assert_eq!((anatomy.all.requests, anatomy.silent, anatomy.impossible), (run.tally.counts.good(), 0, 0));
    assert_eq!(Some(anatomy.all.response_time / anatomy.all.requests), run.tally.response_time.mean());
    let parts = anatomy.all;
    let known = parts.send_lag + parts.before_app.unwrap_or(Nanos::ZERO) + parts.app + parts.rest();
    assert_eq!(known, parts.response_time, "the parts are the whole");
    anatomy
}

/// Whether most of the response time was before the app.
pub(crate) fn waited(parts: &AnatomySums) -> bool {
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

#[test]
fn an_app_that_tells_a_duration_is_believed_and_one_that_is_silent_is_said_to_be() {
    let swept = |headers: &str| {
        let lab = Lab::with("puma")?;
        lab.write("app.ru", &format!("run lambda {{ |env| sleep 0.02; [200, {{{headers}}}, ['ok']] }}\n"));
        let words = "sweep -r app.ru --path / -t1:1 -R20 --multiples 2 --no-calibrate --anatomy --force --inspect proc";
        Some((lab.run(words).with_code(0).stdout, lab.study().runs.remove(0)))
    };
    let Some((stdout, run)) = swept("'server-timing' => 'db;dur=1, app;dur=20'") else { return };
    let anatomy = whole(&run);
    assert_eq!((anatomy.source, anatomy.all.before_app), (AppSource::ServerTiming, None));
    assert_eq!(anatomy.all.app, Nanos::from_millis(20) * anatomy.all.requests);
    assert!(stdout.contains("app (Server-Timing) 20.0 + before and after it"), "{stdout}");

    let (stdout, run) = swept("").unwrap();
    assert_eq!(run.anatomy, None);
    assert!(stdout.contains("the app did not say when it began and ended"), "{stdout}");

    // Of another clock: from before the request was sent.
    let (stdout, run) = swept("'x-app-stamps' => '5 6'").unwrap();
    let good = run.tally.counts.good();
    assert!(run.warnings.contains(&Diagnostic::ImpossibleStamps { answers: good, of: good }), "{:?}", run.warnings);
    assert!(stdout.contains("lie outside the request"), "{stdout}");
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
