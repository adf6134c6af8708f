//! Points and quadratic Bézier curves, the elements of arrows.

use std::ops::{Add, Mul, Sub};

/// A point or vector of the picture, in its units; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    pub const fn new(x: f64, y: f64) -> Self {
        Point { x, y }
    }

    pub fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// The unit vector in this direction; zero stays zero.
    pub fn unit(self) -> Point {
        let length = self.length();
        if length > 0.0 { self * (1.0 / length) } else { self }
    }

    /// The vector rotated by a quarter turn.
    pub fn normal(self) -> Point {
        Point::new(-self.y, self.x)
    }
}

impl Add for Point {
    type Output = Point;
    fn add(self, other: Point) -> Point {
        Point::new(self.x + other.x, self.y + other.y)
    }
}

impl Sub for Point {
    type Output = Point;
    fn sub(self, other: Point) -> Point {
        Point::new(self.x - other.x, self.y - other.y)
    }
}

impl Mul<f64> for Point {
    type Output = Point;
    fn mul(self, factor: f64) -> Point {
        Point::new(self.x * factor, self.y * factor)
    }
}

/// A quadratic Bézier curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bezier {
    pub start: Point,
    pub control: Point,
    pub end: Point,
}

impl Bezier {
    /// The curve from `start` to `end` whose middle is `bulge` away from the middle of the chord, in the direction of
    /// the chord's normal.
    pub fn bulging(start: Point, end: Point, bulge: f64) -> Self {
        let chord = end - start;
        // The middle of the curve is half as far from the chord as the control point.
        let control = (start + end) * 0.5 + chord.unit().normal() * (2.0 * bulge);
        Bezier { start, control, end }
    }

    /// The point at parameter `t`, 0 at the start and 1 at the end.
    pub fn at(&self, t: f64) -> Point {
        let s = 1.0 - t;
        self.start * (s * s) + self.control * (2.0 * s * t) + self.end * (t * t)
    }

    /// The direction at parameter `t`.
    pub fn direction(&self, t: f64) -> Point {
        ((self.control - self.start) * (1.0 - t) + (self.end - self.control) * t).unit()
    }

    /// The part of the curve between two parameters.
    pub fn part(&self, from: f64, to: f64) -> Bezier {
        let (start, end) = (self.at(from), self.at(to));
        // By the blossom of the curve, the control point of a part is linear in both parameters.
        let control = self.start * ((1.0 - from) * (1.0 - to))
            + self.control * (from * (1.0 - to) + to * (1.0 - from))
            + self.end * (from * to);
        Bezier { start, control, end }
    }

    /// The curve translated by a vector.
    pub fn shifted(&self, by: Point) -> Bezier {
        Bezier { start: self.start + by, control: self.control + by, end: self.end + by }
    }

    /// The curve with start and end exchanged.
    pub fn reversed(&self) -> Bezier {
        Bezier { start: self.end, control: self.control, end: self.start }
    }

    /// The first parameter at which the distance from the start reaches `radius`.
    pub fn leaves(&self, radius: f64) -> f64 {
        let steps = 200;
        (0..=steps)
            .map(|i| f64::from(i) / f64::from(steps))
            .find(|&t| (self.at(t) - self.start).length() >= radius)
            .unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_on_the_curve() {
        let curve = Bezier::bulging(Point::new(0.0, 0.0), Point::new(100.0, 0.0), 20.0);
        assert_eq!(curve.at(0.5), Point::new(50.0, 20.0));
        let part = curve.part(0.25, 0.75);
        for i in 0..=4 {
            let t = f64::from(i) / 4.0;
            assert!((part.at(t) - curve.at(0.25 + t / 2.0)).length() < 1e-9);
        }
        let t = curve.leaves(15.0);
        assert!((curve.at(t).length() - 15.0).abs() < 1.0);
    }
}
