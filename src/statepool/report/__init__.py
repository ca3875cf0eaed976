"""What the reports of studies and audit share: sheets and colours, and the page."""
