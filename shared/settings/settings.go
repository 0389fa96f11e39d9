// Package settings reads a function's configuration from environment variables.
//
// A function describes its settings in one struct with envconfig tags next to its code, and FromEnv calls Load once.
// Besides what envconfig does, Load
//
//   - names the variable, the value and the rule in every error, and never shows the value of a secret one;
//   - fills a variable marked `secret:"true"` from the file that NAME_FILE names, or from the AWS secret that
//     NAME_SECRET_ARN names, when NAME itself is not set;
//   - calls Validate on the struct and on the structs it embeds;
//   - answers -help with the table of settings, as the error Help, which the hosts print.
//
// It keeps nothing: two calls read the environment twice. A secret that may change while the process runs is a Secret.
package settings

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// loadTimeout bounds what Load spends on fetching secrets.
const loadTimeout = 10 * time.Second

// Validator is a struct of settings with rules that a type alone cannot express.
type Validator interface {
	Validate() error
}

// Invalid is the error for a setting whose value breaks a rule: "NAME (value) must be …".
func Invalid(name string, value any, rule string, args ...any) error {
	return fmt.Errorf("%s (%v) %s", name, value, fmt.Sprintf(rule, args...))
}

// Missing is the error for a setting that must be there: "NAME is not set: why".
func Missing(name, why string, args ...any) error {
	return fmt.Errorf("%s is not set: %s", name, fmt.Sprintf(why, args...))
}

// Load fills spec, a pointer to a struct with envconfig tags, from the environment and checks it.
// When the process was started with -help it returns a *Help and leaves spec as it is.
func Load(spec any) error {
	vars, err := variables(spec)
	if err != nil {
		return err
	}
	if HelpWanted() {
		return &Help{Table: table(vars)}
	}
	if err := envconfig.Process("", spec); err != nil {
		return readable(err, vars)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	for _, v := range vars {
		if err := v.fillSecret(ctx); err != nil {
			return err
		}
	}
	return validate(reflect.ValueOf(spec))
}

// readable turns an envconfig error into one that names the variable, the value and the rule.
func readable(err error, vars []variable) error {
	var parse *envconfig.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	for _, v := range vars {
		if v.name == parse.KeyName {
			value := fmt.Sprintf("%q", parse.Value)
			if v.secret {
				return Invalid(v.name, redacted, "must be %s", v.rule())
			}
			var decoded bool
			switch v.field.Addr().Interface().(type) {
			case envconfig.Decoder, envconfig.Setter:
				decoded = true
			}
			if decoded { // the type's own message says the rule
				return fmt.Errorf("%s (%s): %w", v.name, value, parse.Err)
			}
			return Invalid(v.name, value, "must be %s", v.rule())
		}
	}
	return err
}

// validate calls Validate on every embedded struct and then on the struct itself.
func validate(spec reflect.Value) error {
	s := spec.Elem()
	for i := range s.NumField() {
		if f := s.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct && f.IsExported() {
			if err := validate(s.Field(i).Addr()); err != nil {
				return err
			}
		}
	}
	if v, ok := spec.Interface().(Validator); ok {
		return v.Validate()
	}
	return nil
}

// variable is one setting of a spec.
type variable struct {
	name, desc, def  string
	required, secret bool
	field            reflect.Value
}

// variables lists the settings of spec in the order of its fields, embedded structs in place.
func variables(spec any) ([]variable, error) {
	v := reflect.ValueOf(spec)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("settings must be read into a pointer to a struct, not %T", spec)
	}
	var out []variable
	s := v.Elem()
	for i := range s.NumField() {
		f := s.Type().Field(i)
		if !f.IsExported() || f.Tag.Get("ignored") == "true" {
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			inner, err := variables(s.Field(i).Addr().Interface())
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
			continue
		}
		name := strings.ToUpper(f.Tag.Get("envconfig"))
		if name == "" {
			return nil, fmt.Errorf("field %s of %T has no envconfig tag", f.Name, spec)
		}
		_, isSecret := s.Field(i).Addr().Interface().(*Secret)
		out = append(out, variable{
			name: name, desc: f.Tag.Get("desc"), def: f.Tag.Get("default"),
			required: f.Tag.Get("required") == "true", secret: isSecret || f.Tag.Get("secret") == "true", field: s.Field(i),
		})
	}
	return out, nil
}

// rule says what a value of the variable's type looks like.
func (v variable) rule() string {
	if v.field.Type() == reflect.TypeFor[time.Duration]() {
		return "a duration such as 45s or 10m"
	}
	switch v.field.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a value of type " + v.field.Type().String()
	}
}

// fillSecret resolves NAME_FILE and NAME_SECRET_ARN for a secret variable.
func (v variable) fillSecret(ctx context.Context) error {
	if !v.secret {
		return nil
	}
	if s, ok := v.field.Addr().Interface().(*Secret); ok {
		if s.from == nil {
			*s = Secret{from: &source{}}
		}
		s.from.name = v.name
		if err := s.from.locate(); err != nil {
			return err
		}
		_, err := s.Get(ctx)
		return err
	}
	if v.field.Kind() != reflect.String {
		return fmt.Errorf("field for %s is secret and must be a string or a settings.Secret", v.name)
	}
	from := source{name: v.name, value: v.field.String()}
	if err := from.locate(); err != nil {
		return err
	}
	value, err := from.read(ctx)
	if err != nil {
		return err
	}
	v.field.SetString(value)
	return nil
}
