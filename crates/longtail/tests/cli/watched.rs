//! `longtail sweep` looks at server and kernel while it drives: the queue is found where it is. By counts and order alone.

use model::Run;
use model::watch::WatchCurve;

use crate::anatomy::{waited, whole};
use crate::lab::{Lab, end, free_port, has, major};

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

#[test]
fn nobody_looks_where_nobody_wants_it() {
    let lab = Lab::new();
    lab.run("sweep --server builtin -w1 -t1:1 -d0.001 -R3 --multiples 1 --inspect none").with_code(0);
    assert_eq!(lab.study().runs[0].watch, None);
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
