//! Pictures of the page, by a browser without a screen: light, dark, without a script, with a search, and of a node with 80
//! neighbors. `make ui-pictures`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::wait::{PATIENCE, wait_until};

use crate::browser::{Browser, Preferences};
use crate::client::{ADDRESS, get};
use crate::scene::{Backend, Scene, service};

/// Writes all of them to `folder`.
pub(crate) fn take(folder: &Path) -> Result<()> {
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
    let usual = Preferences::USUAL;
    let picture = |name: &str, path: &str, preferences: Preferences| {
        let file = folder.join(format!("looking-glass-{name}.png"));
        photograph(&scene, temporary.path(), &file, path, preferences)
    };
    picture("light", "", usual)?;
    picture("dark", "", Preferences { is_dark: true, ..usual })?;
    picture("no-script", "", Preferences { runs_scripts: false, ..usual })?;
    picture("search", "?q=203.0.113.200", Preferences { height: 700, ..usual })?;
    drop(scene);
    let many = tempfile::tempdir()?;
    let scene = Scene::build(1, many.path(), Backend::Native, 80)?;
    wait(&scene, "80 of 80 up")?;
    let file = folder.join("looking-glass-80-neighbors.png");
    let tall = Preferences { is_dark: true, height: 2700, ..usual };
    photograph(&scene, many.path(), &file, "", tall)
}

fn wait(scene: &Scene, text: &str) -> Result<()> {
    wait_until(text, 4 * PATIENCE, || {
        let page = get(&scene.node, "/")?.body;
        ensure!(page.contains(text), "{page}");
        Ok(())
    })
}

fn photograph(
    scene: &Scene,
    temporary: &Path,
    file: &Path,
    path: &str,
    preferences: Preferences,
) -> Result<()> {
    let mut browser = Browser::start(&scene.node, temporary, preferences)?;
    browser.load(&format!("http://{ADDRESS}/{path}"))?;
    if preferences.runs_scripts {
        browser.wait_for("document.getElementById('live').textContent === 'live'")?;
    }
    browser.photograph(file)
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
