//! Which Puma is found, and what it is started with. No Puma is needed: only files with the right
//! names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use launch::puma::{discover, prepare};
use launch::{Addresses, LaunchError, Scratch, ServerBind, Surroundings};
use model::{App, Endpoint, ServerKind, ServerPlan, Socket, Threads};

use crate::kit::folder;

const LOCK: &str =
    "GEM\n  remote: https://rubygems.org/\n  specs:\n    puma (6.5.0)\n      nio4r (~> 2.0)\n";
/// A gem that depends on Puma, and one whose name only begins like it.
const LOCK_WITHOUT: &str =
    "GEM\n  specs:\n    x (1.0)\n      puma (>= 5)\n    puma-metrics (1.2)\nDEPENDENCIES\n  x\n";

/// A directory with programs that do nothing, and one to work in.
struct Stage {
    root: Scratch,
}

impl Stage {
    fn with(programs: &[&str]) -> Stage {
        let root = folder();
        fs::create_dir_all(root.path().join("app/below")).unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        for program in programs {
            let file = root.path().join("bin").join(program);
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Stage { root }
    }

    fn app(&self) -> PathBuf {
        self.root.path().join("app")
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.app().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn around(&self) -> Surroundings {
        Surroundings {
            dir: self.app(),
            path: self.root.path().join("bin").into(),
            rubyopt: None,
            gemfile: None,
            temporary: std::env::temp_dir(),
            data: None,
        }
    }

    fn below(&self) -> Surroundings {
        Surroundings { dir: self.app().join("below"), ..self.around() }
    }
}

fn text(argv: &[OsString]) -> Vec<&str> {
    argv.iter().map(|word| word.to_str().unwrap()).collect()
}

fn found(around: &Surroundings) -> String {
    text(&discover(around).unwrap()).join(" ")
}

fn plan() -> ServerPlan {
    testkit::machine::puma(None, None)
}

/// Programs on PATH, files, `BUNDLE_GEMFILE`; what is found from the folder and from below it.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], Option<&'a str>, [&'a str; 2]);

#[test]
fn a_bundle_that_has_puma_goes_before_the_puma_on_path() {
    let both = &["puma", "bundle"][..];
    let puma = &["puma"][..];
    let cases: [Case<'_>; 6] = [
        (puma, &[], None, ["puma", "puma"]),
        (both, &[("Gemfile.lock", LOCK)], None, ["bundle exec puma", "bundle exec puma"]),
        (both, &[("gems.locked", LOCK)], None, ["bundle exec puma", "bundle exec puma"]),
        (both, &[("gems.locked", LOCK)], Some("gems.rb"), ["bundle exec puma", "puma"]),
        // Bundler takes the nearest, so the one above does not count below it.
        (
            both,
            &[("Gemfile.lock", LOCK), ("below/Gemfile.lock", LOCK_WITHOUT)],
            None,
            ["bundle exec puma", "puma"],
        ),
        (both, &[("x.gemfile.lock", LOCK)], Some("x.gemfile"), ["bundle exec puma", "puma"]),
    ];
    for (programs, files, gemfile, expected) in cases {
        let stage = Stage::with(programs);
        for (name, text) in files {
            stage.file(name, text);
        }
        let gemfile = gemfile.map(PathBuf::from);
        let found = [stage.around(), stage.below()]
            .map(|around| found(&Surroundings { gemfile: gemfile.clone(), ..around }));
        assert_eq!(found, expected, "{files:?}");
    }
    assert!(matches!(discover(&Stage::with(&["ruby"]).around()), Err(LaunchError::NoPuma)));
    // Another Puma is not taken where bundler is missing.
    let stage = Stage::with(puma);
    stage.file("Gemfile.lock", LOCK);
    let error = discover(&stage.around()).unwrap_err();
    assert!(matches!(&error, LaunchError::ProgramNotFound { program, .. } if program == "bundle"));
    assert!(error.to_string().contains("gem install bundler"), "{error}");
}

#[test]
fn a_checkout_of_puma_is_what_is_measured_in_it() {
    for executable in ["bin/puma", "exe/puma"] {
        let stage = Stage::with(&["puma", "bundle", "ruby"]);
        stage.file("puma.gemspec", "");
        stage.file(executable, "");
        assert_eq!(found(&stage.around()), format!("ruby -Ilib {executable}"));
        let app = stage.app();
        let app = app.display();
        assert_eq!(found(&stage.below()), format!("ruby -I{app}/lib {app}/{executable}"));
        stage.file("Gemfile.lock", LOCK);
        assert_eq!(found(&stage.around()), format!("bundle exec {executable}"));
    }
}

#[test]
fn the_executable_of_a_checkout_runs_with_its_own_library_and_not_the_installed_one() {
    let stage = Stage::with(&["puma", "ruby"]);
    stage.file("old/puma.gemspec", "");
    stage.file("old/bin/puma", "");
    stage.file("bin/puma", "");
    let given = |command: &str| {
        let kind = ServerKind::Puma { command: Some(command.into()) };
        let plan = ServerPlan { kind, ..plan() };
        let puma = prepare(&plan, &Addresses::default(), &stage.around()).unwrap();
        let argv = text(&puma.spec.argv).join(" ");
        argv.replace(&stage.app().display().to_string(), "APP").split(" -b ").next().unwrap().into()
    };
    let old: [String; 5] = [
        "old/bin/puma",
        "./old/bin/puma",
        "ruby old/bin/puma",
        "old/bin/puma --debug",
        "ruby -I mine old/bin/puma",
    ]
    .map(given);
    let own = "ruby -IAPP/old/lib APP/old/bin/puma";
    assert_eq!(old[2], format!("{own} -q"));
    assert_eq!(old[3], format!("{own} --debug -q"));
    assert_eq!(old[1].replace("/./", "/"), format!("{own} -q"));
    assert_eq!(old[0], format!("{own} -q"));
    assert_eq!(old[4], "ruby -I mine old/bin/puma -q");
}

#[test]
fn a_command_that_is_given_is_split_as_a_shell_does() {
    let stage = Stage::with(&["ruby", "puma"]);
    let given = |command: &str| {
        let kind = ServerKind::Puma { command: Some(command.into()) };
        prepare(&ServerPlan { kind, ..plan() }, &Addresses::default(), &stage.around())
    };
    let puma = given("ruby -I 'my lib' bin/puma").unwrap();
    assert_eq!(text(&puma.spec.argv)[..6], ["ruby", "-I", "my lib", "bin/puma", "-q", "-b"]);
    assert!(matches!(given("ruby 'bin"), Err(LaunchError::Unusable(_))));
    assert!(matches!(given(""), Err(LaunchError::Unusable(_))));
    let error = given("jruby -S puma").unwrap_err();
    assert!(matches!(&error, LaunchError::ProgramNotFound { program, .. } if program == "jruby"));
    assert!(error.to_string().contains("--puma"), "{error}");
}

#[test]
fn puma_is_started_as_its_own_scripts_do() {
    let stage = Stage::with(&["puma"]);
    stage.file("my.ru", "");
    stage.file("puma.rb", "");
    let plan = ServerPlan {
        workers: Some(4),
        threads: Some(Threads { min: 5, max: 5 }),
        rackup: Some("my.ru".into()),
        config: Some("puma.rb".into()),
        yjit: true,
        ..plan()
    };
    let around = Surroundings { rubyopt: Some("-W0".into()), ..stage.around() };
    let puma = prepare(&plan, &Addresses::default(), &around).unwrap();
    let Endpoint::Unix(socket) = &puma.control.address else { panic!("{:?}", puma.control) };
    let bind = format!("tcp://{}", puma.bind.place.tcp().unwrap());
    let control = format!("--control-url=unix://{}", socket.display());
    let ours = puma.spec.scratch.as_ref().unwrap().path().join("longtail.rb");
    let last = ours.to_str().unwrap();
    let expected =
        ["puma", "-q", "-b", &bind, "-w4", "-t5:5", "-C", "puma.rb", "-C", last, &control, "my.ru"];
    assert_eq!(text(&puma.spec.argv), expected);
    // Everybody on the machine may read a command line, but not the private directory.
    let token = &puma.control.token;
    assert!(!puma.spec.command_line().contains(token.as_str()));
    assert!(fs::read_to_string(ours).unwrap().contains(token.as_str()));
    assert_eq!(puma.spec.env, [("RUBYOPT".into(), "-W0 --yjit".into())].into());
    let address = puma.bind.place.tcp().unwrap();
    assert!(address.ip().is_loopback() && address.port() > 0);
    assert_eq!(puma.bind.to_string(), format!("http://{address}"));
    assert!(
        puma.spec.command_line().starts_with("RUBYOPT='-W0 --yjit' puma -q -b tcp://127.0.0.1:")
    );
}

#[test]
fn each_kind_of_socket_is_asked_for_as_puma_wants_it() {
    let stage = Stage::with(&["puma"]);
    let bind = |socket| {
        let puma =
            prepare(&ServerPlan { socket, ..plan() }, &Addresses::default(), &stage.around())
                .unwrap();
        let argument = text(&puma.spec.argv)[3].to_owned();
        (argument, puma)
    };

    let (argument, puma) = bind(Socket::Ssl4);
    let ServerBind { place: Endpoint::Tcp(address), tls: Some(pair) } = &puma.bind else {
        panic!("{:?}", puma.bind)
    };
    assert!(address.ip().is_loopback());
    let files = [pair.key.clone(), pair.certificate.clone()];
    let [key, certificate] = files.each_ref().map(|file| file.display());
    assert_eq!(argument, format!("ssl://{address}?key={key}&cert={certificate}&verify_mode=none"));
    assert!(files.iter().all(|file| file.is_file()));
    assert_eq!(
        (puma.bind.to_string(), puma.bind.host()),
        (format!("https://{address}"), address.to_string())
    );
    drop(puma);
    assert!(!files.iter().any(|file| file.exists()), "they go with their server");

    let (argument, puma) = bind(Socket::Unix);
    let Endpoint::Unix(path) = &puma.bind.place else { panic!("{:?}", puma.bind) };
    assert_eq!(argument, format!("unix://{}", path.display()));
    assert!(path.parent().unwrap().is_dir() && !path.exists());
    assert_eq!(
        (puma.bind.to_string(), &*puma.bind.host()),
        (format!("unix {}", path.display()), "localhost")
    );

    let (argument, puma) = bind(Socket::Aunix);
    let Endpoint::Abstract(name) = &puma.bind.place else { panic!("{:?}", puma.bind) };
    let name = String::from_utf8_lossy(name);
    assert_eq!(
        (argument, puma.bind.to_string()),
        (format!("unix://@{name}"), format!("unix @{name}"))
    );
    assert_ne!(bind(Socket::Aunix).1.bind, puma.bind, "nobody can guess it");

    // A Unix socket has no port, so it does not matter that this one is taken.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Some(taken.local_addr().unwrap().port());
    let unix = ServerPlan { socket: Socket::Unix, ..plan() };
    assert!(prepare(&unix, &Addresses { port, ..Addresses::default() }, &stage.around()).is_ok());
}

#[test]
fn what_is_left_to_the_config_file_is_not_given() {
    let stage = Stage::with(&["puma"]);
    let puma = prepare(&plan(), &Addresses::default(), &stage.around()).unwrap();
    let argv = text(&puma.spec.argv);
    assert!(!argv.iter().any(|word| word.starts_with("-w") || word.starts_with("-t")), "{argv:?}");
    let configs = argv.iter().filter(|word| **word == "-C").count();
    assert_eq!(configs, 1, "only ours, which reads Puma's usual files: {argv:?}");
    assert_eq!(puma.spec.env, BTreeMap::new());
    // `-w0` is not the same as no `-w`: it overrules a config file and `WEB_CONCURRENCY`.
    let single = ServerPlan { workers: Some(0), ..plan() };
    assert!(
        text(&prepare(&single, &Addresses::default(), &stage.around()).unwrap().spec.argv)
            .contains(&"-w0")
    );
}

/// The text of each Ruby file below a folder.
fn ruby_files(root: &Path) -> BTreeMap<String, String> {
    let mut folders = vec![root.to_owned()];
    let mut files = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rb" || kind == "ru") {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                files.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    files
}

#[test]
fn an_app_that_we_bring_is_there_as_long_as_its_server_may_want_it() {
    let stage = Stage::with(&["puma"]);
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers");
    for (app, folder, env) in [
        (App::Sleep, "", BTreeMap::new()),
        (App::Rails, "rails", [("RAILS_ENV".into(), "production".into())].into()),
    ] {
        let puma =
            prepare(&ServerPlan { app, ..plan() }, &Addresses::default(), &stage.around()).unwrap();
        assert_eq!(puma.spec.env, env);
        let rackup = PathBuf::from(puma.spec.argv.last().unwrap());
        let written = ruby_files(rackup.parent().unwrap());
        if app == App::Rails {
            assert_eq!(written, ruby_files(&brought.join(folder)), "none is left behind");
        } else {
            assert_eq!(written["sleep.ru"], fs::read_to_string(brought.join("sleep.ru")).unwrap());
        }
        let spec = puma.spec.clone();
        drop(puma);
        assert!(rackup.exists());
        drop(spec);
        assert!(!rackup.exists() && !rackup.parent().unwrap().exists());
    }
}

#[test]
fn what_is_refused_is_named_with_its_flag_or_setting_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = taken.local_addr().unwrap().port();
    let port = Some(number);
    let text = number.to_string();
    let addresses = Addresses::default;
    let tcp6 = ServerPlan { socket: Socket::Tcp6, ..plan() };
    let cases = [
        (
            ServerPlan { rackup: Some("no/such.ru".into()), ..plan() },
            addresses(),
            ["'no/such.ru'", "-r"],
        ),
        (
            ServerPlan { config: Some("no/such.rb".into()), ..plan() },
            addresses(),
            ["'no/such.rb'", "-C"],
        ),
        (plan(), Addresses { port, ..addresses() }, [&text, "PUMA_TEST_PORT"]),
        (plan(), Addresses { control_port: port, ..addresses() }, [&text, "PUMA_TEST_CTRL"]),
        (
            plan(),
            Addresses { port: Some(40001), control_port: Some(40001), ..addresses() },
            ["both 40001", ""],
        ),
        (
            plan(),
            Addresses { host4: "0.0.0.0".to_owned(), ..addresses() },
            ["PUMA_TEST_HOST4='0.0.0.0'", ""],
        ),
        (tcp6, Addresses { host6: "::".to_owned(), ..addresses() }, ["PUMA_TEST_HOST6='::'", ""]),
    ];
    let stage = Stage::with(&["puma"]);
    for (plan, addresses, parts) in cases {
        let error = prepare(&plan, &addresses, &stage.around()).unwrap_err().to_string();
        assert!(
            error.lines().count() == 1 && parts.iter().all(|part| error.contains(part)),
            "{error}"
        );
    }
}

#[test]
fn a_control_port_that_is_free_is_used() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stage = Stage::with(&["puma"]);
    let addresses = Addresses { control_port: Some(free.port()), ..Addresses::default() };
    let puma = prepare(&plan(), &addresses, &stage.around()).unwrap();
    assert_eq!(puma.control.address, Endpoint::Tcp(free));
    assert!(text(&puma.spec.argv).contains(&format!("--control-url=tcp://{free}").as_str()));
}
