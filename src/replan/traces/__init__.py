"""Runs as OpenTelemetry traces: the spans and metrics of their events, and where they are sent."""
