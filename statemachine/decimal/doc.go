// Package decimal calculates with float64 as people write them: operands are taken by their shortest decimal form, the one
// that JSON has, the result is exact, and it is rounded once to the nearest double. So Add(0.1, 0.2) is 0.3, and a sum of
// prices that fits 15 digits is exact to the cent; quotients and roots have 17 digits on their way. Zeros, infinities, NaN
// and operands so far apart that an exact result has more than 37 digits give what float64 gives; only a Total is exact at
// any distance. gateway/console/web/src/decimal.ts does the same; both are held to testdata/cases.json. Nothing allocates
// but what has more than 19 digits on its way, and Sqrt.
package decimal
