//go:build !race

package itest

const raced = false
