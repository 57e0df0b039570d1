//! Two figures of one run side by side: what is measured and the floor below it, taken in turn, so that whatever else
//! the machine does meets both alike. Nothing is asserted about a time.

use criterion::Criterion;
use std::time::Duration;

/// A run of one benchmark file.
pub(crate) struct Beside {
    criterion: Criterion,
    lines: Vec<Line>,
}

/// What cannot be avoided, and how long doing it so often takes.
pub(crate) struct Floor<F> {
    pub(crate) what: &'static str,
    pub(crate) timed: F,
}

struct Line {
    what: &'static str,
    took: f64,
    floor: &'static str,
    below: f64,
    ratio: f64,
}

impl Beside {
    /// Short samples: criterion's own flags still apply.
    pub(crate) fn new() -> Self {
        let criterion = Criterion::default()
            .warm_up_time(Duration::from_secs(1))
            .measurement_time(Duration::from_secs(4))
            .sample_size(40)
            .configure_from_args();
        Self { criterion, lines: vec![] }
    }

    /// Measures `timed`, which does it so often and says how long that took, each time right after the floor.
    pub(crate) fn measure(
        &mut self,
        what: &'static str,
        mut floor: Floor<impl FnMut(u64) -> Duration>,
        mut timed: impl FnMut(u64) -> Duration,
    ) {
        let (mut took, mut below, mut ratio) = (vec![], vec![], vec![]);
        self.criterion.bench_function(what, |bencher| {
            bencher.iter_custom(|times| {
                let (floor, whole) = ((floor.timed)(times), timed(times));
                below.push(each(floor, times));
                took.push(each(whole, times));
                ratio.push(whole.as_secs_f64() / floor.as_secs_f64().max(f64::MIN_POSITIVE));
                whole
            });
        });
        // A name that was filtered out was not measured.
        if !took.is_empty() {
            let (took, below, ratio) = (median(took), median(below), median(ratio));
            self.lines.push(Line { what, took, floor: floor.what, below, ratio });
        }
    }

    /// Prints the medians.
    pub(crate) fn show(self) {
        self.criterion.final_summary();
        println!("\n{:<44} {:>10} {:>10} {:>7}  floor", "measured", "median", "floor", "ratio");
        for Line { what, took, floor, below, ratio } in &self.lines {
            println!("{what:<44} {:>10} {:>10} {ratio:>7.2}  {floor}", plain(*took), plain(*below));
        }
    }
}

fn each(whole: Duration, times: u64) -> f64 {
    whole.as_secs_f64() / f64::from(u32::try_from(times).unwrap_or(u32::MAX))
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

fn plain(seconds: f64) -> String {
    if seconds < 0.001 { format!("{:.2} us", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}
