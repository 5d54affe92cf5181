//! What the flags of `sweep --bodies` mean together.

use model::{App, BodiesPlan, Probe, ServerKind, Stop};

use super::SweepArgs;
use crate::args::server::ServerWord;
use crate::mistake::{Mistake, wrong};

impl SweepArgs {
    /// A flag that says something about other sweeps only, where there is one.
    fn not_of_bodies(&self) -> Option<&'static str> {
        let given = [
            (self.server.path.is_some(), "--path"),
            (self.server.body.is_some(), "--body"),
            (self.server.app.is_some(), "--app"),
            (self.server.which != ServerWord::Puma, "--server builtin"),
            (self.server.url.is_some(), "--url"),
            (self.server.slots.is_some(), "--slots"),
            (!self.server.command.is_empty(), "-- COMMAND"),
            (!self.multiples.is_empty(), "--multiples (-c N sets the connections)"),
            (self.connections.len() > 1, "a list of -c"),
            (self.requests_per_connection.is_some(), "-R"),
            (self.probe_discipline, "--probe-discipline"),
            (self.generator.is_some(), "--generator"),
            (self.server.inspect.asks_app(), "--inspect app"),
            (self.outlets.is_any(), "--statsd-listen, --statsd-to, --metrics and --otlp"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// All that was asked of a sweep over bodies, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn bodies_plan(&self) -> Result<BodiesPlan, Mistake> {
        if let Some(flag) = self.not_of_bodies() {
            return Err(wrong(format!("--bodies goes without {flag}: leave out one of the two")));
        }
        self.check_values()?;
        let sockets = &self.server.socket;
        if let Some((_, twice)) = sockets.iter().enumerate().find(|(at, socket)| sockets[..*at].contains(socket)) {
            return Err(wrong(format!("-s has {twice} twice: name each kind of socket once (--repeat N repeats all)")));
        }
        // A body is little work: what the tracepoints cost would show.
        let probe = self.server.inspect.probe(sockets)?.filter(|probe| *probe != Probe::Auto).unwrap_or(Probe::Proc);
        let (connections_per_stream, streams) = match self.connections.first() {
            Some(connections) => (*connections, Some(self.streams.unwrap_or(1))),
            None => (self.connections_per_stream.unwrap_or(BodiesPlan::CONNECTIONS_PER_STREAM), self.streams),
        };
        let puma = ServerKind::Puma { command: self.server.puma.puma.clone() };
        Ok(BodiesPlan {
            server: self.server.reached(self.server.puma.server(puma, App::Bodies, sockets[0]))?,
            stream: self.server.stream_as_given(Stop::After(self.length), self.warm_up)?,
            sockets: sockets.clone(),
            bodies: self.bodies.clone().unwrap_or_default(),
            connections_per_stream,
            streams,
            repeat: self.repeat,
            seed: self.seed.unwrap_or(1),
            cool_down: !self.no_cool_down,
            calibrate: !self.no_calibrate,
            probe,
            thresholds: self.thresholds.all(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use model::plan::quoted;
    use model::{Bodies, Nanos, Socket};

    use super::*;
    use crate::args::{Command, Invocation, parse};

    /// The plan of a command line, as a shell reads it.
    fn plan(line: &str) -> BodiesPlan {
        let words = shlex::split(line).unwrap().into_iter().map(OsString::from);
        match parse(std::iter::once("longtail".into()).chain(words)) {
            Ok(Invocation::Command(Command::Sweep(args) | Command::Bodies(args), _)) if args.has_bodies() => {
                args.bodies_plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
            }
            Err(mistake) => panic!("{line}: {mistake}"),
            Ok(_) => panic!("{line} is not bodies"),
        }
    }

    #[test]
    fn the_words_of_pumas_script_work() {
        let words = "-w2 -t5:5 -s tcp6 -b ac50,100 -c4 -T3 -D5 -d0.01 -Y -C puma.rb -r ci.ru -k";
        let asked = plan(&format!("bodies {words}"));
        assert_eq!(asked.bodies.to_string(), "ac50,100");
        assert_eq!(asked.sockets, [Socket::Tcp6]);
        assert_eq!((asked.connections_on(10), asked.stream.stop), (12, Stop::After(Nanos::from_secs(5))));
        assert_eq!(asked.stream.delay, Some(Nanos::from_millis(10)));
        assert!(asked.server.yjit && !asked.stream.keep_alive);
        assert_eq!(plan(&format!("sweep {words}")), asked, "a sweep takes them too");
    }

    #[test]
    fn the_defaults_are_those_of_pumas_script() {
        let asked = plan("bodies -w2 -t5:5");
        assert_eq!((asked.bodies.clone(), asked.runs()), (Bodies::default(), 28));
        assert_eq!((asked.streams_on(10), asked.connections_on(10)), (8, 16), "wrk -t8 -c16");
        assert_eq!(asked.stream.stop, Stop::After(Nanos::from_secs(10)));
        assert_eq!(plan("sweep --bodies=acsi1,10,100,256,512,1024,2048 -w2 -t5:5"), asked);
    }

    #[test]
    fn a_sweeps_connections_are_the_total() {
        assert_eq!(plan("sweep -bs1 -c16").connections_on(10), 16);
        assert_eq!(plan("bodies -bs1 -c16").connections_on(10), 8 * 16, "of each stream");
    }

    #[test]
    fn a_plan_printed_and_parsed_is_itself() {
        for words in [
            "",
            "-w2 -t5:5 -s tcp4,ssl4,unix,aunix -bsi10,2048",
            "-w0 -t0:16 -D1500ms --warm-up=0 --repeat=3 --seed=99",
            "--no-calibrate --no-cool-down -r 'my app.ru' -C config/puma.rb -Y",
            "--timestamps=user",
            "-k -c7 -T3 -d0.25 --lanes=2 --timeout=250ms --worker-header=x-pid",
            "-c7 -T1",
            "--puma 'bundle exec puma' -s ssl6",
            "-b 10 -s tcp,ssl",
            "--inspect=none -s unix",
            "--probe=bpf",
        ] {
            let asked = plan(&format!("bodies {words}"));
            let printed = asked.arguments().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            assert_eq!(plan(&printed), asked, "{printed}");
        }
    }
}
