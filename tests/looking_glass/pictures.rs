//! Pictures of the page, by a browser without a screen: light, dark, without a script, with a search, and of a node with 80
//! neighbors. `make ui-pictures`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::namespace::{Namespace, Place};
use lab::process::output_of;
use lab::wait::{PATIENCE, wait_until};

use crate::client::{ADDRESS, get};
use crate::scene::{Backend, Scene, service};

const BROWSER: &str = "/usr/bin/chromium";
const DARK: &str = "--blink-settings=preferredColorScheme=0";
const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
/// The settings of a user who allows no site to run scripts.
const NO_SCRIPT: &str = r#"{"profile": {"default_content_setting_values": {"javascript": 2}}}"#;

/// Writes all of them to `folder`.
pub(crate) fn take(folder: &Path) -> Result<()> {
    ensure!(Path::new(BROWSER).exists(), "{BROWSER} is missing; run scripts/setup.sh browser");
    fs::create_dir_all(folder).context("the folder of the pictures")?;
    let temporary = tempfile::tempdir()?;
    let mut scene = Scene::build(0, temporary.path(), Backend::Native, 4)?;
    scene.fairway.apply("more", &more())?;
    wait(&scene, "4 of 4 up")?;
    scene.bird.ask("disable tor_2")?;
    wait(&scene, "3 of 4 up")?;
    scene.bird.ask("enable tor_2")?;
    wait(&scene, "4 of 4 up")?;
    scene.bird.ask("disable tor_3")?;
    wait(&scene, "3 of 4 up")?;
    let shoot = |name: &str, path: &str, height: u32, setting: &str| {
        let file = folder.join(format!("looking-glass-{name}.png"));
        photograph(&scene.node, &file, path, height, setting, "{}")
    };
    shoot("light", "", 1300, LIGHT)?;
    shoot("dark", "", 1300, DARK)?;
    let no_script = folder.join("looking-glass-no-script.png");
    photograph(&scene.node, &no_script, "", 1300, LIGHT, NO_SCRIPT)?;
    shoot("search", "?q=203.0.113.200", 700, LIGHT)?;
    drop(scene);
    let many = tempfile::tempdir()?;
    let scene = Scene::build(1, many.path(), Backend::Native, 80)?;
    wait(&scene, "80 of 80 up")?;
    let file = folder.join("looking-glass-80-neighbors.png");
    photograph(&scene.node, &file, "", 2700, DARK, "{}")
}

fn wait(scene: &Scene, text: &str) -> Result<()> {
    wait_until(text, 4 * PATIENCE, || {
        let page = get(&scene.node, "/")?.body;
        ensure!(page.contains(text), "{page}");
        Ok(())
    })
}

fn photograph(
    node: &Namespace,
    file: &Path,
    path: &str,
    height: u32,
    setting: &str,
    preferences: &str,
) -> Result<()> {
    let profile = tempfile::tempdir()?;
    let settings = profile.path().join("Default");
    fs::create_dir(&settings)?;
    fs::write(settings.join("Preferences"), preferences)?;
    let mut command: Command = node.command("timeout".as_ref());
    command.args([
        "60",
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
    ]);
    command.args([setting, "--timeout=4000", "--force-device-scale-factor=1"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--window-size=1440,{height}"));
    command.arg(format!("--screenshot={}", file.display()));
    command.arg(format!("http://{ADDRESS}/{path}"));
    output_of(&mut command)?;
    ensure!(file.exists(), "the browser has not written {}", file.display());
    Ok(())
}

/// Services, a pool that is nearly full, and addresses on the segment.
fn more() -> String {
    let mut text = String::from(
        "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: small}\n\
         spec: {addresses: [192.0.2.64-192.0.2.73, '2001:db8:5::/120'], autoAssign: false}\n---\n\
         apiVersion: metallb.io/v1beta1\nkind: L2Advertisement\nmetadata: {name: small}\n\
         spec: {ipAddressPools: [small]}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {name: queue, namespace: shop, annotations: \
         {metallb.io/loadBalancerIPs: 203.0.113.1}}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n",
    );
    for (place, name) in ["api", "cart", "search", "mail"].into_iter().enumerate() {
        text.push_str("---\n");
        text.push_str(&service(name, &format!("198.51.100.{}", 11 + place)));
    }
    for place in 0..9 {
        text.push_str("---\n");
        text.push_str(&service(&format!("local-{place}"), &format!("192.0.2.{}", 64 + place)));
    }
    text
}
