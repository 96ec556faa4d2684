package main

import (
	"os"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// levelNever is the --log-level that logs nothing but the reason of a crash.
const levelNever = "never"

// logger writes the server's logs to stderr.
type logger struct {
	log.Logger
	level zap.AtomicLevel
}

// newLogger takes values of --log-level and --log-format.
func newLogger(levelName, format string) logger {
	if levelName == levelNever {
		// No higher: a logger that drops a fatal message would not exit either.
		levelName = zapcore.FatalLevel.String()
	}
	level := zap.NewAtomicLevelAt(log.ParseZapLevel(levelName))
	encoder := zapcore.NewConsoleEncoder(log.DefaultZapEncoderConfig)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)
	return logger{Logger: log.NewZapLogger(zap.New(core)), level: level}
}

// stopping silences what the services say about each other's absence while the
// server stops. Who asked for more than errors keeps seeing everything.
func (l logger) stopping() {
	if l.level.Level() >= zapcore.ErrorLevel {
		l.level.SetLevel(zapcore.FatalLevel)
	}
}
