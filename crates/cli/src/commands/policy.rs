//! `coracle policy check`: what a policy makes of a request, rule by rule, without sending it.

use crate::{exit::Exit, failure::Failure, outbound, terminal};
use clap::{Args, Subcommand};
use coracle_outbound::{Destination, Policy, PolicyOrigin};
use std::path::PathBuf;

/// Look at the rules for requests that leave.
#[derive(Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Subcommand)]
enum PolicyCommand {
    Check(CheckArgs),
}

/// Say which rule decides about a request, and why the others do not.
///
/// Nothing is sent, and no name is resolved: what a name leads to is judged when it is connected to.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle policy check rules.json https://api.github.com/repos/a/b
  coracle policy check outbound.json https://api.github.com/ --policy github --method POST
  coracle policy check outbound.json tcp://db.internal:5432 --tenant acme

The file has the rules of one policy, {\"rules\": [...]}, or is what `serve --outbound-file` takes.

Exit codes: 0 allowed, 1 denied or to be asked, 2 usage.")]
struct CheckArgs {
    /// A file with the rules
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The URL; or tcp://HOST:PORT for a connection
    #[arg(value_name = "URL")]
    url: String,

    /// The method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,

    /// The policy of that name in the file
    #[arg(long, value_name = "NAME", conflicts_with = "tenant")]
    policy: Option<String>,

    /// The policy that this tenant's sessions have
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

pub(crate) fn policy(args: &PolicyArgs) -> Result<Exit, Failure> {
    let PolicyCommand::Check(check) = &args.command;
    let policy = check.policy()?;
    let (destination, method) = match check.url.strip_prefix("tcp://") {
        Some(address) => (Destination::of_address(address), None),
        None => (Destination::of_url(&check.url), Some(&*check.method)),
    };
    let destination = match destination {
        Ok(destination) => destination,
        Err(refused) => {
            terminal::write_stdout(&format!("denied: {refused}\n"))?;
            return Ok(Exit::Threw);
        }
    };
    let explanation = policy.explain(&destination, method);
    terminal::write_stdout(&format!("{explanation}\n"))?;
    match explanation.decision().is_allowed() {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Threw),
    }
}

impl CheckArgs {
    fn policy(&self) -> Result<Policy, Failure> {
        let path = &self.file;
        let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let is_whole_file = self.policy.is_some() || self.tenant.is_some() || !has_rules(&text);
        if !is_whole_file {
            let policy = Policy::of_json("given", PolicyOrigin::Operator, &text);
            return policy.map_err(|error| wrong(error.to_string()));
        }
        let config = outbound::read(path)?;
        let tenant = self.tenant.as_deref().unwrap_or("default");
        let name = match &self.policy {
            Some(name) => Some(name.as_str()),
            None => config.policy_of(tenant),
        };
        let Some(name) = name else {
            return Err(wrong(format!(
                "the tenant \"{tenant}\" has no policy there: nothing leaves. Name one with --policy"
            )));
        };
        let Some(rules) = config.policies.get(name) else {
            return Err(wrong(format!("there is no policy \"{name}\"")));
        };
        let policy = Policy::of_json(name, PolicyOrigin::Operator, rules.get());
        policy.map_err(|error| wrong(format!("policies.{name}: {error}")))
    }
}

/// Whether a file has one policy, and not what a server is given.
fn has_rules(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|file| file.get("rules").is_some())
}
