//! The size of the program's file.

use super::{Field, mebibytes};
use crate::fault::Fault;
use crate::peers;
use crate::table::{Bar, Row, Unit};

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let ours = mebibytes(peers::size(&field.keyward.path)?);
    let rmcp = mebibytes(peers::size(&field.rmcp.path)?);
    Ok(vec![
        Row::new("size of the binary", Unit::Mebibytes, ours)
            .against("rmcp", rmcp, ours / rmcp)
            .bar(Bar::FigureAtMost(10.0))
            .note(peers::linkage(&field.keyward.path)),
    ])
}
