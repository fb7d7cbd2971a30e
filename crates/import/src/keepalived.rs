//! `keepalived.conf`.
//!
//! Answers which blocks there are, and which of them concern addresses that hosts share. Knows no line inside of a
//! `vrrp_instance`: `instance` does. Called by `crate::import`.

mod instance;
mod script;
mod text;

use std::collections::BTreeSet;

use instance::Instances;
use script::Script;
use text::Statement;

use crate::outcome::Outcome;

/// Lines of `global_defs` about processes, logs and VRRP's packets, which concern no address.
const WITHOUT_EFFECT: &[&str] = &[
    "router_id",
    "script_user",
    "enable_script_security",
    "max_auto_priority",
    "dynamic_interfaces",
    "default_interface",
    "process_names",
    "reload_time_file",
    "startup_script",
    "umask",
    "use_symlink_paths",
];
/// Prefixes of such lines.
const WITHOUT_EFFECT_PREFIXES: &[&str] = &[
    "vrrp_",
    "checker_",
    "bfd_",
    "lvs_flush",
    "lvs_netlink",
    "snmp_",
    "enable_snmp",
    "dbus_",
    "enable_dbus",
];
/// The same outside of blocks.
const PROCESS: &[&str] = &[
    "net_namespace",
    "net_namespace_ipvs",
    "namespace_with_ipsets",
    "instance",
    "use_pid_dir",
    "child_wait_time",
    "linkbeat_use_polling",
    "linkbeat_interfaces",
    "config_save_dir",
];

pub(crate) fn import(text: &str, outcome: &mut Outcome) {
    let statements = text::statements(text, outcome);
    let scripts: Vec<Script<'_>> = statements.iter().filter_map(Script::read).collect();
    let mut tracked = BTreeSet::new();
    let mut instances = Instances::default();
    for statement in &statements {
        match statement.keyword() {
            "global_defs" => global_definitions(statement, outcome),
            "vrrp_instance" => {
                tracked.extend(instances.instance(statement, outcome));
            }
            "vrrp_script" => {}
            "vrrp_sync_group" => {
                tracked.extend(instance::tracked_scripts(statement));
                outcome.untranslated(
                    statement.line,
                    &statement.heading(),
                    "has no equal: each address has an owner of its own, so that addresses of the group may be on several \
                     hosts; prefer the same host for all of them (preferredNodeSelectors), or use one address",
                );
            }
            "virtual_server" | "virtual_server_group" | "SSL" => outcome.untranslated(
                statement.line,
                &statement.heading(),
                "is for IPVS: fairway proxy makes virtual servers of Services and EndpointSlices (docs/proxy.md), without weights \
                 and health checks of its own: write these objects by hand",
            ),
            "garp_group" => outcome.note(
                statement.line,
                &statement.heading(),
                "is fixed: an address is announced when its owner changes, and again with --layer2-refresh",
            ),
            keyword if PROCESS.contains(&keyword) => {}
            _ => outcome.untranslated(
                statement.line,
                &statement.heading(),
                "has no equal: set up by hand what it does",
            ),
        }
    }
    for script in &scripts {
        script.report(tracked.contains(script.name), outcome);
    }
    for (name, line) in instances.unknown_scripts(&scripts) {
        outcome.untranslated(
            line,
            &format!("track_script {name}"),
            "the text has no such vrrp_script",
        );
    }
    outcome.objects.extend(instances.objects());
}

fn global_definitions(statement: &Statement, outcome: &mut Outcome) {
    for inner in statement.inner() {
        let subject = format!("global_defs: {}", inner.keyword());
        match inner.keyword() {
            "vrrp_garp_master_refresh" => refresh(inner, &subject, outcome),
            "notification_email" | "notification_email_from" => {
                let why =
                    "is not there: Fairway sends no mail; the log and metrics have each change";
                outcome.untranslated(inner.line, &subject, why);
            }
            // They matter for mail alone.
            keyword if keyword.starts_with("smtp_") || keyword == "no_email_faults" => {}
            "notify_fifo"
            | "notify_fifo_script"
            | "vrrp_notify_fifo"
            | "vrrp_notify_fifo_script"
            | "lvs_notify_fifo"
            | "lvs_notify_fifo_script" => {
                outcome.untranslated(inner.line, &subject, instance::NOTIFY);
            }
            "lvs_sync_daemon" => {
                let why = "has no equal: connections of IPVS are not synchronized";
                outcome.untranslated(inner.line, &subject, why);
            }
            keyword if WITHOUT_EFFECT.contains(&keyword) => {}
            keyword if WITHOUT_EFFECT_PREFIXES.iter().any(|it| keyword.starts_with(it)) => {}
            _ => outcome.untranslated(
                inner.line,
                &subject,
                "is no line that is known here: check its name",
            ),
        }
    }
}

/// `garp_master_refresh`, globally or of one instance.
fn refresh(statement: &Statement, subject: &str, outcome: &mut Outcome) {
    let seconds = statement.argument(0).unwrap_or("60");
    if seconds != "0" {
        let why = format!("is an option of the daemon: --layer2-refresh {seconds}s");
        outcome.note(statement.line, subject, why);
    }
}
