//! Columns of equal length. Other libraries take them as an Arrow stream, without a copy.

use crate::error::refused;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of a table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Datum {
    Absent,
    Switch(bool),
    /// A number such as a seed, which may need all 64 bits.
    Count(u64),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl Datum {
    /// Converts a value of a JSON document. Lists and objects become their JSON text.
    pub(crate) fn of_json(value: &serde_json::Value) -> Datum {
        use serde_json::Value;
        match value {
            Value::Null => Datum::Absent,
            Value::Bool(on) => Datum::Switch(*on),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Datum::Whole(whole),
                (None, Some(count)) => Datum::Count(count),
                (None, None) => number.as_f64().map_or(Datum::Absent, Datum::Number),
            },
            Value::String(text) => Datum::Text(text.clone()),
            list => Datum::Text(list.to_string()),
        }
    }

    fn number(&self) -> Option<f64> {
        match *self {
            Datum::Switch(on) => Some(f64::from(u8::from(on))),
            Datum::Count(count) => Some(count as f64),
            Datum::Whole(whole) => Some(whole as f64),
            Datum::Number(number) => Some(number),
            Datum::Absent | Datum::Text(_) => None,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Datum::Absent => None,
            Datum::Switch(on) => Some(on.to_string()),
            Datum::Count(count) => Some(count.to_string()),
            Datum::Whole(whole) => Some(whole.to_string()),
            Datum::Number(number) => Some(number.to_string()),
            Datum::Text(text) => Some(text.clone()),
        }
    }
}

/// A table while its rows are added. A row that lacks a column has no value there.
#[derive(Default)]
pub(crate) struct Rows {
    names: Vec<String>,
    columns: Vec<Vec<Datum>>,
    places: BTreeMap<String, usize>,
    rows: usize,
}

impl Rows {
    /// Sets a column of the present row. A new name adds a column.
    pub(crate) fn set(&mut self, name: &str, value: Datum) {
        let at = self.places.get(name).copied().unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.columns.push(Vec::new());
            self.places.insert(name.to_owned(), self.names.len() - 1);
            self.names.len() - 1
        });
        self.columns[at].resize(self.rows, Datum::Absent);
        self.columns[at].push(value);
    }

    /// Ends the present row.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Returns the finished table.
    pub(crate) fn finish(mut self) -> PyResult<Table> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, column) in self.names.iter().zip(&mut self.columns) {
            column.resize(self.rows, Datum::Absent);
            let array = array_of(column);
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        Ok(Table { batch: batch.map_err(refused)? })
    }
}

/// Returns a column of the narrowest type that holds all of its values.
fn array_of(column: &[Datum]) -> ArrayRef {
    let all = |fits: fn(&Datum) -> bool| {
        column.iter().all(|value| *value == Datum::Absent || fits(value))
    };
    if column.iter().any(|value| matches!(value, Datum::Text(_))) {
        return Arc::new(column.iter().map(Datum::text).collect::<StringArray>());
    }
    if all(|value| *value == Datum::Absent)
        || column.iter().any(|it| matches!(it, Datum::Number(_)))
    {
        return Arc::new(column.iter().map(Datum::number).collect::<Float64Array>());
    }
    if all(|value| matches!(value, Datum::Switch(_))) {
        let switch = |value: &Datum| match value {
            Datum::Switch(on) => Some(*on),
            _ => None,
        };
        return Arc::new(column.iter().map(switch).collect::<BooleanArray>());
    }
    if all(|value| matches!(value, Datum::Count(_))) {
        let count = |value: &Datum| match value {
            Datum::Count(count) => Some(*count),
            _ => None,
        };
        return Arc::new(column.iter().map(count).collect::<UInt64Array>());
    }
    if all(|value| matches!(value, Datum::Whole(_))) {
        let whole = |value: &Datum| match value {
            Datum::Whole(whole) => Some(*whole),
            _ => None,
        };
        return Arc::new(column.iter().map(whole).collect::<Int64Array>());
    }
    Arc::new(column.iter().map(Datum::number).collect::<Float64Array>())
}

/// Columns of equal length.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the values of a column; None for a row that has no value.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column =
            self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let any = column.as_any();
        match column.data_type() {
            DataType::Boolean => list_of(py, any.downcast_ref::<BooleanArray>()),
            DataType::UInt64 => list_of(py, any.downcast_ref::<UInt64Array>()),
            DataType::Int64 => list_of(py, any.downcast_ref::<Int64Array>()),
            DataType::Float64 => list_of(py, any.downcast_ref::<Float64Array>()),
            _ => list_of(py, any.downcast_ref::<StringArray>()),
        }
    }

    /// Returns what [`Table::of_parts`] takes: the name, the type and the values of each column.
    fn parts<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(String, &'static str, Bound<'py, PyList>)>> {
        let kind = |name: &String| match self.batch.column_by_name(name).map(|it| it.data_type()) {
            Some(DataType::Boolean) => "switch",
            Some(DataType::UInt64) => "count",
            Some(DataType::Int64) => "whole",
            Some(DataType::Float64) => "number",
            _ => "text",
        };
        let part = |name: String| Ok((name.clone(), kind(&name), self.column(py, &name)?));
        self.columns().into_iter().map(part).collect()
    }

    /// Returns the table with these parts. `rows` is the number of its rows.
    #[staticmethod]
    fn of_parts(parts: Vec<(String, String, Bound<'_, PyList>)>, rows: usize) -> PyResult<Table> {
        let mut made = Rows { rows, ..Rows::default() };
        for (at, (name, kind, list)) in parts.into_iter().enumerate() {
            let values = list.iter().map(|value| datum(&kind, &value)).collect::<PyResult<_>>()?;
            made.places.insert(name.clone(), at);
            made.names.push(name);
            made.columns.push(values);
        }
        made.finish()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns the table as a stream of the Arrow C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the request.
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Converts a value of a column of this type.
fn datum(kind: &str, value: &Bound<'_, PyAny>) -> PyResult<Datum> {
    if value.is_none() {
        return Ok(Datum::Absent);
    }
    Ok(match kind {
        "switch" => Datum::Switch(value.extract()?),
        "count" => Datum::Count(value.extract()?),
        "whole" => Datum::Whole(value.extract()?),
        "number" => Datum::Number(value.extract()?),
        _ => Datum::Text(value.extract()?),
    })
}

fn list_of<'py, T, I>(py: Python<'py>, values: Option<I>) -> PyResult<Bound<'py, PyList>>
where
    I: IntoIterator<Item = Option<T>>,
    T: IntoPyObject<'py>,
{
    let list = PyList::empty(py);
    for value in values.into_iter().flatten() {
        list.append(value)?;
    }
    Ok(list)
}
