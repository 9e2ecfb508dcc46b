//! Tables of connections, from Python's columns.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use redtail_core::{ParamError, Span, Time};
use redtail_spec::TraceSite;
use redtail_traffic::{TraceParams, TraceTable, TracedConnection, TracedExchange, Traces};

use crate::queue;

/// A checked table of connections, which runs share.
#[pyclass(frozen)]
pub struct Trace(pub Arc<TraceTable>);

fn numbers(column: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let words = column.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word))
}

#[pymethods]
impl Trace {
    /// `name` is a hash of the content. Columns are unsigned numbers of 64 bits, little-endian: by
    /// connection its start and round-trip time in nanoseconds (all ones where it is not known),
    /// whether it is reverse, and its first exchange; by exchange the payloads of request and
    /// response in bytes, and what either side waits in nanoseconds.
    #[new]
    #[allow(clippy::too_many_arguments)] // Python gives them by name
    fn new(
        name: &str,
        start_ns: &[u8],
        rtt_ns: &[u8],
        reverse: &[u8],
        first: &[u8],
        request: &[u8],
        response: &[u8],
        service_ns: &[u8],
        think_ns: &[u8],
    ) -> PyResult<Self> {
        let per_connection = [start_ns, rtt_ns, reverse, first];
        let per_exchange = [request, response, service_ns, think_ns];
        let alike = |columns: &[&[u8]]| columns.iter().all(|it| it.len() == columns[0].len());
        if !alike(&per_connection) || !alike(&per_exchange) || start_ns.is_empty() {
            return Err(PyValueError::new_err("columns of different lengths"));
        }
        let mut connections = Vec::with_capacity(start_ns.len() / 8);
        let rows = numbers(start_ns).zip(numbers(rtt_ns));
        for ((start, rtt), (reverse, first)) in rows.zip(numbers(reverse).zip(numbers(first))) {
            connections.push(TracedConnection {
                start: Time::ZERO + Span::from_ns(start),
                rtt: (rtt != u64::MAX).then(|| Span::from_ns(rtt)),
                reverse: reverse != 0,
                first: first as u32,
            });
        }
        let mut exchanges = Vec::with_capacity(request.len() / 8);
        let rows = numbers(request).zip(numbers(response));
        for ((request, response), (service, think)) in
            rows.zip(numbers(service_ns).zip(numbers(think_ns)))
        {
            exchanges.push(TracedExchange {
                request,
                response,
                service: Span::from_ns(service),
                think: Span::from_ns(think),
            });
        }
        let table = TraceTable::new(name, connections, exchanges);
        Ok(Self(Arc::new(table)))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
}

/// The tables of a run.
pub fn traces(given: Option<Vec<Py<Trace>>>) -> Traces {
    let given = given.into_iter().flatten();
    given.fold(Traces::new(), |traces, it| {
        traces.with(Arc::clone(&it.get().0))
    })
}

/// Asks Python for the table of a group, which it gives or refuses.
pub fn resolve(
    tables: &Bound<'_, PyAny>,
    group: &TraceParams,
    site: &TraceSite,
) -> PyResult<Result<Arc<TraceTable>, ParamError>> {
    let (duration, path) = (site.duration.as_ps(), site.path.as_ps());
    let answer = tables.call1((&group.file, duration, path, site.both_ways))?;
    if let Ok(trace) = answer.cast::<Trace>() {
        return Ok(Ok(Arc::clone(&trace.get().0)));
    }
    let (key, problem, accepted) = queue::refusal(&answer)?;
    Ok(Err(ParamError::new(key, problem, accepted)))
}
