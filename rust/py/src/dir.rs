//! Log directories that this process owns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kafkaseg_core::checkpoint::MetaProperties;
use kafkaseg_core::config::DirConfig;
use kafkaseg_core::dir::{DirOptions, LogDir};
use kafkaseg_core::fs::RealFs;
use kafkaseg_core::uuid::Uuid;
use kafkaseg_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::to_py;
use crate::log::{ManualClock, NativeLog, clock_of, recovery_dict, stats_dict};
use crate::pulse::run;
use crate::watch::Watch;

/// A `log.dirs` entry.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct NativeDir {
    dir: Arc<LogDir<RealFs>>,
}

#[pymethods]
impl NativeDir {
    /// Opens a log directory. `meta` is cluster id, node id and directory id.
    #[staticmethod]
    #[pyo3(signature = (path, config, *, create, kafka_recovery, replicated, meta, clock, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        config: BTreeMap<String, String>,
        create: bool,
        kafka_recovery: bool,
        replicated: bool,
        meta: Option<(String, i32, Option<String>)>,
        clock: Option<&ManualClock>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let watch = Watch::new(progress);
        let opened = (|| {
            let pairs = config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            let options = DirOptions {
                config: DirConfig::parse(pairs)?,
                create,
                kafka_recovery,
                replicated,
                meta: meta.map(meta_of).transpose()?,
                clock: clock_of(clock),
                progress: Some(watch.dir_progress()),
                ..DirOptions::default()
            };
            py.detach(|| LogDir::open(&RealFs, &path, options))
        })();
        let dir = watch.outcome(py, opened)?;
        Ok(Self { dir: Arc::new(dir) })
    }

    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.dir.is_closed()
    }

    #[getter]
    fn is_started(&self) -> bool {
        self.dir.is_started()
    }

    /// The configuration, every name with its value.
    fn config(&self) -> BTreeMap<&'static str, String> {
        self.dir.config().entries().into_iter().collect()
    }

    /// Cluster id, node id, directory id.
    fn meta(&self) -> Option<(Option<String>, Option<i32>, Option<String>)> {
        let meta = self.dir.meta()?;
        Some((meta.cluster_id, meta.node_id, meta.directory_id.map(|id| id.to_string())))
    }

    fn topics(&self) -> BTreeMap<String, usize> {
        self.dir.topics()
    }

    fn partitions(&self) -> Vec<(String, i32)> {
        self.dir.partitions()
    }

    fn offline(&self) -> Vec<((String, i32), String)> {
        self.dir.offline()
    }

    fn topic_id(&self, py: Python<'_>, topic: &str) -> PyResult<Option<String>> {
        let id = run(py, |_| self.dir.topic_id(topic))?;
        Ok(id.map(|id| id.to_string()))
    }

    fn topic_config(
        &self,
        py: Python<'_>,
        topic: &str,
    ) -> PyResult<BTreeMap<&'static str, String>> {
        let config = run(py, |_| self.dir.topic_config(topic))?;
        Ok(config.entries().into_iter().collect())
    }

    fn partition(&self, py: Python<'_>, topic: &str, partition: i32) -> PyResult<NativeLog> {
        run(py, |_| self.dir.partition(topic, partition)).map(NativeLog::of)
    }

    fn create_topic(
        &self,
        py: Python<'_>,
        topic: &str,
        partitions: i32,
        config: BTreeMap<String, String>,
        topic_id: Option<&str>,
    ) -> PyResult<String> {
        let id = topic_id.map(uuid_of).transpose().map_err(|error| to_py(py, error))?;
        let id = run(py, |_| self.dir.create_topic(topic, partitions, &config, id))?;
        Ok(id.to_string())
    }

    fn grow_topic(&self, py: Python<'_>, topic: &str, partitions: i32) -> PyResult<()> {
        run(py, |_| self.dir.grow_topic(topic, partitions))
    }

    fn delete_topic(&self, py: Python<'_>, topic: &str) -> PyResult<()> {
        run(py, |_| self.dir.delete_topic(topic))
    }

    /// What opening found and did.
    fn recovery<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let recovery = self.dir.recovery();
        let dict = PyDict::new(py);
        dict.set_item("clean", recovery.is_clean)?;
        let logs = PyList::empty(py);
        for (key, log) in &recovery.logs {
            logs.append((key, recovery_dict(py, log)?))?;
        }
        dict.set_item("logs", logs)?;
        dict.set_item("unreadable", &recovery.unreadable)?;
        dict.set_item("ignored", &recovery.ignored)?;
        Ok(dict)
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| self.dir.start())
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.dir.stop());
    }

    /// Segments deleted, directories removed, and what failed.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn upkeep(
        &self,
        py: Python<'_>,
        now_ms: Option<i64>,
    ) -> PyResult<(u64, usize, Vec<((String, i32), String)>)> {
        let done = run(py, |_| self.dir.upkeep(now_ms.unwrap_or_else(|| self.dir.now_ms())))?;
        Ok((done.segments_deleted, done.directories_removed, done.failed))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| self.dir.flush())
    }

    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| self.dir.checkpoint())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.dir.stats());
        let dict = stats_dict(py, &stats.logs)?;
        dict.set_item("partitions", stats.partitions)?;
        dict.set_item("offline", stats.offline)?;
        dict.set_item("unloaded", stats.unloaded)?;
        Ok(dict)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| self.dir.close())
    }
}

fn meta_of((cluster, node, directory): (String, i32, Option<String>)) -> Result<MetaProperties> {
    Ok(MetaProperties {
        version: 1,
        cluster_id: Some(cluster),
        node_id: Some(node),
        directory_id: Some(match directory {
            Some(text) => uuid_of(&text)?,
            None => Uuid::random(),
        }),
    })
}

fn uuid_of(text: &str) -> Result<Uuid> {
    Uuid::parse(text)
        .filter(|id| *id != Uuid::ZERO)
        .ok_or_else(|| Error::Invalid(format!("{text:?} is no identifier as Kafka writes them")))
}
