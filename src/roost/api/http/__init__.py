"""HTTP: what every request and every answer has, whatever its route."""
