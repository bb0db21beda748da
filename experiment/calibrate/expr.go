package calibrate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
)

// Lookup gives the value of a name "run.metric" of an expression.
type Lookup func(run, metric string) (float64, error)

// Eval computes an arithmetic expression over run.metric names (a counter is run.unit.counter): + -
// * /, numbers, parentheses. Validation files use it for losses and ratios.
func Eval(expr string, look Lookup) (float64, error) {
	e, err := parser.ParseExpr(expr)
	if err != nil {
		return 0, fmt.Errorf("expression %q: %w", expr, err)
	}
	v, err := eval(e, look)
	if err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		err = errors.New("the value is too large")
	}
	if err != nil {
		return 0, fmt.Errorf("expression %q: %w", expr, err)
	}
	return v, nil
}

// Names calls f for each run.metric of an expression, whose form it checks; values, and so a
// division by zero, are not looked at.
func Names(expr string, f func(run, metric string) error) error {
	e, err := parser.ParseExpr(expr)
	if err == nil {
		err = names(e, f)
	}
	if err != nil {
		return fmt.Errorf("expression %q: %w", expr, err)
	}
	return nil
}

func names(e ast.Expr, f func(run, metric string) error) error {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return names(e.X, f)
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return names(e.X, f)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.ADD, token.SUB, token.MUL, token.QUO:
			if err := names(e.X, f); err != nil {
				return err
			}
			return names(e.Y, f)
		}
	case *ast.SelectorExpr:
		if run, metric, ok := selector(e); ok {
			return f(run, metric)
		}
	case *ast.BasicLit:
		_, err := eval(e, nil)
		return err
	}
	return errForm
}

var errForm = errors.New("only numbers, run.metric, + - * / and parentheses are allowed")

// selector splits run.unit.counter into the run and the rest.
func selector(e *ast.SelectorExpr) (run, metric string, ok bool) {
	switch x := e.X.(type) {
	case *ast.Ident:
		return x.Name, e.Sel.Name, true
	case *ast.SelectorExpr:
		run, metric, ok = selector(x)
		return run, metric + "." + e.Sel.Name, ok
	}
	return "", "", false
}

func eval(e ast.Expr, look Lookup) (float64, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return eval(e.X, look)
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT {
			return strconv.ParseFloat(e.Value, 64)
		}
	case *ast.SelectorExpr:
		if run, metric, ok := selector(e); ok {
			return look(run, metric)
		}
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			v, err := eval(e.X, look)
			return -v, err
		}
	case *ast.BinaryExpr:
		a, err := eval(e.X, look)
		if err != nil {
			return 0, err
		}
		b, err := eval(e.Y, look)
		if err != nil {
			return 0, err
		}
		switch e.Op {
		case token.ADD:
			return a + b, nil
		case token.SUB:
			return a - b, nil
		case token.MUL:
			return a * b, nil
		case token.QUO:
			if b == 0 {
				return 0, fmt.Errorf("division by zero")
			}
			return a / b, nil
		}
	}
	return 0, errForm
}
