//! `arctic-vmm`: boots a guest on KVM with the card in its own process.

use std::time::Duration;

use arctic_vmm::{Boot, Config, Vm};

fn main() {
    let elf = std::env::args().nth(1).unwrap().into();
    let boot = Boot::Bare { elf, command_line: "hello".into() };
    let config = Config { boot, memory: 64 << 20, cpus: 2, output: Box::new(std::io::stdout()) };
    println!("{:?}", Vm::new(config).and_then(|vm| vm.run(Duration::from_secs(3))));
}
