//! The program. Everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let config = args
        .iter()
        .position(|a| a == "--config")
        .and_then(|at| args.get(at + 1))
        .map(std::path::PathBuf::from);
    let loaded = match toolcrib::config::load(config.as_deref(), &|name: &str| std::env::var(name).ok()) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            eprintln!("{mistakes}");
            return ExitCode::from(3);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let end = runtime.block_on(async {
        if args.iter().any(|a| a == "stdio") {
            toolcrib::serve::stdio(loaded).await
        } else {
            toolcrib::serve::serve(loaded, Default::default()).await
        }
    });
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
