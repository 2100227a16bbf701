//! The workloads that both sides run, from `benches/workloads`.

use anyhow::Context;
use serde_json::Value;
use std::{fs, path::Path};

pub(crate) struct Workload {
    pub(crate) source: String,
    pub(crate) argument: Value,
    pub(crate) expected: Value,
}

pub(crate) struct Workloads {
    /// Ten workers of one job each: what a sandbox itself costs.
    pub(crate) small: Set,
    /// Ten workers such as agents write, which have work to do.
    pub(crate) scripts: Set,
    /// Programs of `cpu.js`, by name.
    pub(crate) programs: Vec<(String, Value)>,
    pub(crate) cpu_source: String,
    pub(crate) json_source: String,
    pub(crate) json: Vec<(String, Value)>,
    /// Calls a function ten times, one after the other.
    pub(crate) tools_sequential: Workload,
    /// Calls a function a thousand times at once.
    pub(crate) tools_concurrent: Workload,
    /// Returns the source of a module of about 20 kB for a seed.
    pub(crate) large_source: String,
    /// Workers that do harm, by the names of their files.
    pub(crate) hostile: Vec<(String, String)>,
}

impl Workloads {
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            fs::read_to_string(folder.join(name))
                .with_context(|| folder.join(name).display().to_string())
        };
        let manifest: Value = serde_json::from_str(&read("manifest.json")?)?;
        let set = |key: &str| -> anyhow::Result<Set> {
            let entries = manifest[key].as_array().context("manifest: a set")?;
            let workloads = entries.iter().map(|entry| {
                Ok(Workload {
                    source: read(entry["file"].as_str().context("manifest: file")?)?,
                    argument: entry["argument"].clone(),
                    expected: entry["expected"].clone(),
                })
            });
            Ok(Set(workloads.collect::<anyhow::Result<_>>()?))
        };
        let programs = |key: &str| -> anyhow::Result<Vec<(String, Value)>> {
            let entries = manifest[key]["programs"]
                .as_array()
                .context("manifest: programs")?;
            entries
                .iter()
                .map(|entry| {
                    Ok((
                        entry["name"].as_str().context("manifest: name")?.to_owned(),
                        entry["expected"].clone(),
                    ))
                })
                .collect()
        };
        let tools = |key: &str| -> anyhow::Result<Workload> {
            let entry = &manifest["tools"][key];
            Ok(Workload {
                source: read(entry["file"].as_str().context("manifest: file")?)?,
                argument: Value::Null,
                expected: entry["expected"].clone(),
            })
        };
        let hostile = manifest["hostile"]
            .as_array()
            .context("manifest: hostile")?
            .iter()
            .map(|file| {
                let file = file.as_str().context("manifest: file")?;
                Ok((file.to_owned(), read(file)?))
            });
        Ok(Self {
            hostile: hostile.collect::<anyhow::Result<_>>()?,
            tools_sequential: tools("sequential")?,
            tools_concurrent: tools("concurrent")?,
            small: set("small")?,
            scripts: set("scripts")?,
            programs: programs("cpu")?,
            json: programs("json")?,
            cpu_source: read("cpu.js")?,
            json_source: read("json.js")?,
            large_source: read("large.mjs")?,
        })
    }
}

/// Workers that are taken in turn.
pub(crate) struct Set(Vec<Workload>);

impl Set {
    /// The `index`-th workload and its source, unlike any before.
    pub(crate) fn unique(&self, index: usize) -> (&Workload, String) {
        let workload = &self.0[index % self.0.len()];
        (workload, format!("{}\n// {index}\n", workload.source))
    }
}
