//! The `arctic` program.

fn main() -> std::process::ExitCode {
    arctic_gpu::cli::run()
}
